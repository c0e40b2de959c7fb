"""What a catalog knows of a table: the entry, its partitions, and the verbs that every kind of catalog has."""

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
    """A column: its name, and its type in Hive's words."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry of a table.

    Attributes:
        database: name of its database.
        name: its own name.
        location: where the table is.
        columns: all but partition columns, in order.
        partition_columns: the columns that partitions have values of.
        parameters: properties of the table; of an entry to be written, those that it must have.
        serde_parameters: properties of its serde, likewise.
        input_format: Java class that reads its files.
        output_format: Java class that would write them.
        serde: Java class that knows their rows.
        managed: whether dropping the entry drops the data; only counts when an entry is made.
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
        """Whether the entry stands for a read-optimized query, such as that of a ``_ro`` table."""
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
    """A catalog. Every method raises StorageError where the catalog cannot be reached or refuses.

    Names of databases and tables are looked up in lower case. ``Entry`` objects that ``find`` gave are what ``alter``
    changes: all that is not said stays.
    """

    kind: str

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        ...

    def has_database(self, name: str) -> bool:
        """Say whether a database exists."""
        ...

    def create_database(self, name: str) -> None:
        """Make a database, unless it exists."""
        ...

    def list_entries(self, database: str) -> list[Entry]:
        """Return the entries of a database."""
        ...

    def find(self, database: str, name: str) -> Entry | None:
        """Return the entry of a table; None if there is none."""
        ...

    def create(self, entry: Entry) -> None:
        """Make an entry."""
        ...

    def alter(self, known: Entry, entry: Entry) -> None:
        """Give an entry the columns, classes and location of another one, and all its parameters.

        Other parameters stay. ``known`` is what ``find`` gave. Partitions get the columns, too.
        """
        ...

    def list_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        """Return those of some partitions that are there; None: all."""
        ...

    def add_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        """Add partitions that are not there, with the columns and classes of the table."""
        ...

    def move_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        """Give partitions other folders."""
        ...

    def drop_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]]) -> None:
        """Drop partitions, and leave their files alone."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class HasMetastore(Protocol):
    """What a table can be synced with."""

    @property
    def metastore(self) -> Metastore:
        """The catalog's verbs."""
        ...
