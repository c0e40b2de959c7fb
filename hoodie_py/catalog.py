"""Tables by name: the catalogs that other engines look tables up in.

``open_catalog`` connects to a Hive Metastore or to AWS Glue; ``Catalog`` lists and opens tables, and registers them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from hoodie_py.errors import InvalidQueryError, TableNotFoundError, UnsupportedFeatureError
from hoodie_py.hoodie_table import HoodieTable
from hoodie_py.metastore.connect import connect
from hoodie_py.metastore.entry import LAST_INSTANT, Entry, Metastore
from hoodie_py.metastore.report import SyncResult

__all__ = ["Catalog", "CatalogTable", "open_catalog"]


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A Hudi table in a catalog.

    Attributes:
        name: the table's name with its database.
        uri: base path of the table.
        instant: the newest commit that the catalog has recorded; None if it recorded none.
        query_type: "snapshot", or "read_optimized" for the ``_ro`` entry of a MERGE_ON_READ table.

    Examples:
        >>> synced = catalog.sync(trips, "lake")
        >>> catalog.find("lake.trips_ro").query_type
        'read_optimized'
    """

    name: str
    uri: str
    instant: str | None
    query_type: str


class Catalog:
    """A catalog; use it as a context manager, or ``close`` it. It has one connection: use it from one thread.

    Examples:
        >>> synced = catalog.sync(trips, "lake")
        >>> [each.name for each in catalog.list("lake")]
        ['lake.trips_ro', 'lake.trips_rt', 'lake.trips']
        >>> catalog.open("lake.trips").scan().count()
        3
    """

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore

    @property
    def metastore(self) -> Metastore:
        """The catalog's verbs."""
        return self._metastore

    def list(self, database: str | None = None) -> list[CatalogTable]:
        """Return the Hudi tables of one database, or of all databases.

        Raises:
            InvalidQueryError: there is no such database.
            StorageError: the catalog failed.
        """
        databases = [database.lower()] if database is not None else self._metastore.list_databases()
        entries = [entry for name in databases for entry in self._metastore.list_entries(name)]
        return [_describe(each) for each in entries if each.is_hudi]

    def find(self, name: str) -> CatalogTable:
        """Return the catalog's entry of a table: ``database.table``, or ``table`` in the database ``default``.

        Raises:
            TableNotFoundError: there is no such table.
            InvalidQueryError: the table is no Hudi table.
            StorageError: the catalog failed.
        """
        return _describe(self._find(name))

    def open(
        self, name: str, storage_options: Mapping[str, Any] | None = None, timezone: str | None = None
    ) -> HoodieTable:
        """Open a table by its name; further arguments as for ``HoodieTable.open``.

        Raises:
            TableNotFoundError: there is no such table.
            InvalidQueryError: the table is no Hudi table.
            UnsupportedFeatureError: the name belongs to the read-optimized view of a table.
            StorageError: the catalog or the table's store failed.
        """
        entry = self._find(name)
        if entry.is_read_optimized:
            raise UnsupportedFeatureError(
                f"{entry.full_name} stands for the base files of a table only.",
                hint="Open the table itself, and scan with query_type='read_optimized'.",
                location=entry.base_path,
            )
        return HoodieTable.open(entry.base_path, storage_options, timezone)

    def sync(
        self,
        table: HoodieTable,
        database: str | None = None,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> SyncResult:
        """Register a table or bring its entries up to date; as ``HoodieTable.sync``."""
        return table.sync(self, database, name, options, dry_run)

    def close(self) -> None:
        """Close the connection."""
        self._metastore.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Catalog({self._metastore.kind!r})"

    def _find(self, name: str) -> Entry:
        database, dot, table = name.lower().rpartition(".")
        if not table or "." in database:
            raise InvalidQueryError(f"This is no name of a table: {name[:200]!r}.", hint="Give database.table.")
        found = self._metastore.find(database if dot else "default", table)
        if found is None:
            raise TableNotFoundError(
                f"The catalog has no table {name[:200]}.", hint="Catalog.list and hoodie tables show those there are."
            )
        if not found.is_hudi:
            raise InvalidQueryError(f"The catalog's table {found.full_name} is no Hudi table.")
        return found


def open_catalog(kind: str, uri: str | None = None, options: Mapping[str, Any] | None = None) -> Catalog:
    """Connect to a catalog.

    Args:
        kind: "hive" for a Hive Metastore, "glue" for the Glue Data Catalog of AWS.
        uri: ``thrift://host:9083`` of a metastore; for Glue only an endpoint other than AWS's.
        options: for Glue ``region_name``, ``profile_name``, ``catalog_id`` or boto3's credentials.

    Raises:
        InvalidQueryError: there is no such catalog or option, or the client's package is missing.
        UnsupportedFeatureError: the catalog's kind cannot hold Hudi tables.
        StorageError: the catalog cannot be reached.

    Examples:
        >>> from moto import mock_aws  # plays AWS
        >>> with mock_aws(), open_catalog("glue", options={"region_name": "eu-west-1"}) as glue:
        ...     glue.list()
        []
    """
    return Catalog(connect(kind, uri, options))


def _describe(entry: Entry) -> CatalogTable:
    query_type = "read_optimized" if entry.is_read_optimized else "snapshot"
    return CatalogTable(entry.full_name, entry.base_path, entry.parameters.get(LAST_INSTANT), query_type)
