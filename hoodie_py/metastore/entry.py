"""A table's entry in a catalog, its partitions, and the operations that every kind of catalog has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hoodie_py.options.read import AS_READ_OPTIMIZED

LAST_INSTANT = "last_commit_time_sync"  # HoodieSyncClient.HOODIE_LAST_COMMIT_TIME_SYNC
LAST_COMPLETION = "last_commit_completion_time_sync"
PROVIDER = "spark.sql.sources.provider"
SERDE_PATH = "path"  # ConfigUtils.TABLE_SERDE_PATH
READ_OPTIMIZED = str(AS_READ_OPTIMIZED)  # ConfigUtils.IS_QUERY_AS_RO_TABLE
_HUDI_FORMATS = ("org.apache.hudi.", "com.uber.hoodie.")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, and its type in Hive's syntax."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A table's entry in a catalog.

    Attributes:
        database: name of its database.
        name: its own name.
        location: where the table is.
        columns: all columns but the partition columns, in order.
        partition_columns: the partition columns, in the order of a partition's values.
        parameters: properties of the table. An entry to be written has only those to be set.
        serde_parameters: properties of its serde, likewise.
        input_format: Java class that reads its files.
        output_format: Java class that would write them.
        serde: Java class that converts their rows.
        managed: whether dropping the entry drops the data; only used when an entry is created.
    """

    database: str
    name: str
    location: str
    columns: tuple[Column, ...] = ()
    partition_columns: tuple[Column, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    input_format: str = ""
    output_format: str = ""
    serde: str = ""
    managed: bool = False

    @property
    def full_name(self) -> str:
        """The name with the database."""
        return f"{self.database}.{self.name}"

    @property
    def is_hudi(self) -> bool:
        """Whether the table is a Hudi table."""
        return self.parameters.get(PROVIDER, "").lower() == "hudi" or self.input_format.startswith(_HUDI_FORMATS)

    @property
    def is_read_optimized(self) -> bool:
        """Whether the entry shows a read-optimized query, such as a ``_ro`` table."""
        return self.serde_parameters.get(READ_OPTIMIZED, "").lower() == "true"

    @property
    def base_path(self) -> str:
        """Base path of the Hudi table."""
        return self.serde_parameters.get(SERDE_PATH) or self.location


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition: its values in the order of the partition columns, and its folder."""

    values: tuple[str, ...]
    location: str


class Metastore(Protocol):
    """A catalog. Every method raises StorageError if the catalog cannot be reached or refuses.

    Names of databases and tables are looked up in lower case. ``alter`` changes an entry that ``find`` returned, and
    leaves everything alone that the new entry does not set.
    """

    kind: str

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        ...

    def has_database(self, name: str) -> bool:
        """Return whether a database exists."""
        ...

    def create_database(self, name: str) -> None:
        """Create a database, unless it exists."""
        ...

    def list_entries(self, database: str) -> list[Entry]:
        """Return the entries of a database."""
        ...

    def find(self, database: str, name: str) -> Entry | None:
        """Return the entry of a table; None if there is none."""
        ...

    def create(self, entry: Entry) -> None:
        """Create an entry."""
        ...

    def alter(self, known: Entry, entry: Entry) -> None:
        """Set an entry's columns, classes and location, and the parameters that ``entry`` has.

        Other parameters stay as they are. ``known`` is what ``find`` returned. Partitions get the columns, too.
        """
        ...

    def list_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        """Return the partitions with these values that exist; None: all partitions."""
        ...

    def add_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        """Add partitions that do not exist yet, with the columns and classes of the table."""
        ...

    def move_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        """Change the folders of partitions."""
        ...

    def drop_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]]) -> None:
        """Drop partitions from the catalog; their files stay."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class HasMetastore(Protocol):
    """An object with a catalog that a table can be synced with."""

    @property
    def metastore(self) -> Metastore:
        """The catalog."""
        ...
