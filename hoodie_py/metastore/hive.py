"""A Hive Metastore over Thrift (Hudi ``HMSDDLExecutor``).

The connection is plain: no SASL (Kerberos), no HTTP. Partitions are sent in batches.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hoodie_py.errors import ConflictError, InvalidQueryError, StorageError
from hoodie_py.metastore.entry import CatalogPartition, Column, Entry

DEFAULT_PORT = 9083
_SECONDS = 60.0  # calls about a large table may take long
_BATCH = 500
_FEW = 50  # up to so many partitions are asked for one by one


class HiveMetastore:
    """A Hive Metastore: one connection, for one thread.

    ``uri`` is ``thrift://host:port``, or several of these joined by commas; the first one that answers is used.
    """

    kind = "hive"

    def __init__(self, uri: str, seconds: float = _SECONDS) -> None:
        self._types, self._client = _load_types(), _connect(uri, seconds)
        self._uri = uri

    def list_databases(self) -> list[str]:
        return sorted(self._call(self._client.get_all_databases))

    def has_database(self, name: str) -> bool:
        try:
            self._client.get_database(name)
        except self._types.NoSuchObjectException:
            return False
        except Exception as error:
            raise self._make_error(error) from error
        return True

    def create_database(self, name: str) -> None:
        database = self._types.Database(name=name, description="Made by hoodie_py.", parameters={})
        try:
            self._call(self._client.create_database, database)
        except ConflictError:  # someone else made it
            return

    def list_entries(self, database: str) -> list[Entry]:
        if not self.has_database(database):
            raise InvalidQueryError(f"The catalog has no database {database[:200]}.")
        names = sorted(self._call(self._client.get_all_tables, database))
        found: list[Entry] = []
        for batch in _cut(names):
            request = self._types.GetTablesRequest(dbName=database, tblNames=list(batch))
            tables = self._call(self._client.get_table_objects_by_name_req, request).tables
            found += map(_read_entry, tables)
        return found

    def find(self, database: str, name: str) -> Entry | None:
        table = self._find(database, name)
        return None if table is None else _read_entry(table)

    def create(self, entry: Entry) -> None:
        parameters = {} if entry.managed else {"EXTERNAL": "TRUE"}
        table = self._types.Table(
            tableName=entry.name,
            dbName=entry.database,
            owner=_find_user(),
            createTime=0,
            lastAccessTime=0,
            retention=0,
            sd=self._make_descriptor(entry, entry.location),
            partitionKeys=self._make_columns(entry.partition_columns),
            parameters={**parameters, **entry.parameters},
            tableType="EXTERNAL_TABLE",  # as in HMSDDLExecutor, also for managed tables
        )
        self._call(self._client.create_table, table)

    def alter(self, known: Entry, entry: Entry) -> None:
        table = self._find(known.database, known.name)
        if table is None:
            raise ConflictError(f"The catalog's table {known.full_name} was dropped meanwhile.", hint="Sync again.")
        context = {"DO_NOT_UPDATE_STATS": "true"}
        if known.columns != entry.columns and entry.partition_columns:
            context["CASCADE"] = "true"
        descriptor = table.sd
        comments = {each.name: each.comment for each in descriptor.cols or ()}
        descriptor.cols = self._make_columns(entry.columns, comments)
        descriptor.location = entry.location
        descriptor.inputFormat, descriptor.outputFormat = entry.input_format, entry.output_format
        descriptor.serdeInfo.serializationLib = entry.serde
        descriptor.serdeInfo.parameters = {**(descriptor.serdeInfo.parameters or {}), **entry.serde_parameters}
        table.parameters = {**(table.parameters or {}), **entry.parameters}
        self._call(
            self._client.alter_table_with_environment_context,
            known.database,
            known.name,
            table,
            self._types.EnvironmentContext(properties=context),
        )

    def list_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        if values is not None and len(values) <= _FEW:
            return [found for each in values if (found := self._find_partition(entry, each)) is not None]
        found = self._call(self._client.get_partitions, entry.database, entry.name, -1)
        wanted = None if values is None else set(values)
        return [each for each in map(_read_partition, found) if wanted is None or each.values in wanted]

    def add_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        for batch in _cut(partitions):
            request = self._types.AddPartitionsRequest(
                dbName=entry.database,
                tblName=entry.name,
                parts=[self._make_partition(entry, each) for each in batch],
                ifNotExists=True,
                needResult=False,
            )
            self._call(self._client.add_partitions_req, request)

    def move_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        for batch in _cut(partitions):
            made = [self._make_partition(entry, each) for each in batch]
            self._call(self._client.alter_partitions, entry.database, entry.name, made)

    def drop_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]]) -> None:
        for each in values:
            try:
                self._client.drop_partition(entry.database, entry.name, list(each), False)
            except self._types.NoSuchObjectException:
                continue  # someone else dropped it
            except Exception as error:
                raise self._make_error(error) from error

    def close(self) -> None:
        self._client.close()

    def _find(self, database: str, name: str) -> Any:
        request = self._types.GetTableRequest(dbName=database, tblName=name)
        try:
            return self._client.get_table_req(request).table
        except self._types.NoSuchObjectException:
            return None
        except Exception as error:
            raise self._make_error(error) from error

    def _find_partition(self, entry: Entry, values: tuple[str, ...]) -> CatalogPartition | None:
        try:
            return _read_partition(self._client.get_partition(entry.database, entry.name, list(values)))
        except self._types.NoSuchObjectException:
            return None
        except Exception as error:
            raise self._make_error(error) from error

    def _make_descriptor(self, entry: Entry, location: str) -> Any:
        return self._types.StorageDescriptor(
            cols=self._make_columns(entry.columns),
            location=location,
            inputFormat=entry.input_format,
            outputFormat=entry.output_format,
            compressed=False,
            numBuckets=0,
            serdeInfo=self._types.SerDeInfo(serializationLib=entry.serde, parameters=dict(entry.serde_parameters)),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    def _make_columns(self, columns: Sequence[Column], comments: Mapping[str, str] | None = None) -> list[Any]:
        said = comments or {}
        return [
            self._types.FieldSchema(name=each.name, type=each.type, comment=said.get(each.name.lower(), ""))
            for each in columns
        ]

    def _make_partition(self, entry: Entry, partition: CatalogPartition) -> Any:
        return self._types.Partition(
            values=list(partition.values),
            dbName=entry.database,
            tableName=entry.name,
            createTime=0,
            lastAccessTime=0,
            sd=self._make_descriptor(entry, partition.location),
            parameters={},
        )

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except Exception as error:
            raise self._make_error(error) from error

    def _make_error(self, error: Exception) -> StorageError | InvalidQueryError | ConflictError:
        types, said = self._types, str(getattr(error, "message", None) or error).strip()[:1000]
        if isinstance(error, types.InvalidOperationException | types.InvalidObjectException):
            return InvalidQueryError(
                f"The Hive Metastore refuses: {said}.",
                hint="Where columns cannot become others, drop the table from the catalog, and sync again.",
                catalog=self._uri,
            )
        if isinstance(error, types.AlreadyExistsException):
            return ConflictError(f"The Hive Metastore has it already: {said}.", catalog=self._uri)
        return StorageError(f"The Hive Metastore failed: {said or type(error).__name__}.", catalog=self._uri)


@cache
def _load_types() -> Any:
    """Return the module of the Thrift types, which is parsed once per process."""
    import thriftpy2

    path = Path(__file__).with_name("hive_metastore.thrift")
    return thriftpy2.load(str(path), "hoodie_py_hive_metastore_thrift")


def _connect(uri: str, seconds: float) -> Any:
    """Connect to the first metastore that answers."""
    from thriftpy2.rpc import make_client

    problem: Exception | None = None
    for host, port in _parse_uris(uri):
        try:
            return make_client(_load_types().ThriftHiveMetastore, host, port, timeout=int(seconds * 1000))
        except Exception as error:  # noqa: BLE001 - thriftpy2's own errors, and those of sockets
            problem = error
    raise StorageError(
        f"The Hive Metastore cannot be reached: {getattr(problem, 'message', None) or problem}.",
        hint="Check the address, and that the metastore runs.",
        catalog=uri,
    ) from problem


def _parse_uris(uri: str) -> list[tuple[str, int]]:
    found = []
    for each in filter(None, map(str.strip, uri.split(","))):
        text = each if "://" in each else f"thrift://{each}"
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme != "thrift" or parts.path.strip("/"):
            raise InvalidQueryError(
                f"This is no address of a Hive Metastore: {each[:200]!r}.", hint="Give thrift://host:9083."
            )
        found.append((host, port or DEFAULT_PORT))
    if not found:
        raise InvalidQueryError("The address of the Hive Metastore is missing.", hint="Give thrift://host:9083.")
    return found


def _read_entry(table: Any) -> Entry:
    descriptor, serde = table.sd, table.sd.serdeInfo if table.sd is not None else None
    return Entry(
        database=table.dbName or "",
        name=table.tableName or "",
        location=(descriptor.location if descriptor is not None else "") or "",
        columns=tuple(map(_read_column, descriptor.cols or ())) if descriptor is not None else (),
        partition_columns=tuple(map(_read_column, table.partitionKeys or ())),
        parameters=table.parameters or {},
        serde_parameters=(serde.parameters if serde is not None else None) or {},
        input_format=(descriptor.inputFormat if descriptor is not None else "") or "",
        output_format=(descriptor.outputFormat if descriptor is not None else "") or "",
        serde=(serde.serializationLib if serde is not None else "") or "",
    )


def _read_column(column: Any) -> Column:
    return Column(column.name or "", column.type or "")


def _read_partition(partition: Any) -> CatalogPartition:
    return CatalogPartition(tuple(partition.values or ()), (partition.sd.location or "") if partition.sd else "")


def _cut(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)]


def _find_user() -> str:
    """Return the user's name, which becomes the owner; empty if the system does not know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
