"""The Glue Data Catalog of AWS (Hudi ``AWSGlueCatalogSyncClient``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hoodie_py.errors import ConflictError, FileMissingError, InvalidQueryError, StorageError
from hoodie_py.metastore.entry import CatalogPartition, Column, Entry
from hoodie_py.options import sync as options

_METADATA_LISTING = "hudi.metadata-listing-enabled"  # Athena's
_SESSION = frozenset({"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "profile_name", "region_name"})
_OPTIONS = frozenset({*_SESSION, "endpoint_url", "catalog_id"})
_MOST_ADDED, _MOST_DROPPED, _MOST_READ = 100, 25, 1000  # Glue's limits for a call
# Fields that get_table returns and update_table refuses
_READ_ONLY = frozenset({
    "DatabaseName", "CreateTime", "UpdateTime", "CreatedBy", "IsRegisteredWithLakeFormation", "CatalogId", "VersionId",
    "FederatedTable", "IsMultiDialectView", "Status", "IsMaterializedView",
})  # fmt: skip


class GlueCatalog:
    """The Glue Data Catalog of an account; boto3 finds credentials and region unless the options have them.

    ``options``: ``region_name``, ``endpoint_url``, ``profile_name``, ``catalog_id`` and the ``aws_`` keys.
    """

    kind = "glue"

    def __init__(self, given: Mapping[str, Any], sync_options: Mapping[str, str]) -> None:
        self._catalog = {"CatalogId": given["catalog_id"]} if given.get("catalog_id") else {}
        self._skip_archive = options.GLUE_SKIP_ARCHIVE.read(sync_options)
        self._parameters = {_METADATA_LISTING: str(options.GLUE_METADATA_LISTING.read(sync_options)).upper()}
        self._client = _connect(given)

    def list_databases(self) -> list[str]:
        return [each["Name"] for each in self._page("get_databases", "DatabaseList")]

    def has_database(self, name: str) -> bool:
        return self._find(self._client.get_database, Name=name) is not None

    def create_database(self, name: str) -> None:
        made = {"Name": name, "Description": "Made by hoodie_py."}
        try:
            self._call(self._client.create_database, DatabaseInput=made)
        except ConflictError:  # someone else made it
            return

    def list_entries(self, database: str) -> list[Entry]:
        if not self.has_database(database):
            raise InvalidQueryError(f"The catalog has no database {database[:200]}.")
        return [_read_entry(each) for each in self._page("get_tables", "TableList", DatabaseName=database)]

    def find(self, database: str, name: str) -> Entry | None:
        table = self._get(database, name)
        return None if table is None else _read_entry(table)

    def create(self, entry: Entry) -> None:
        external = {} if entry.managed else {"EXTERNAL": "TRUE"}
        table = {
            "Name": entry.name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {**external, **self._parameters, **entry.parameters},
            "PartitionKeys": _make_columns(entry.partition_columns),
            "StorageDescriptor": _make_descriptor(entry, entry.location),
        }
        self._call(self._client.create_table, DatabaseName=entry.database, TableInput=table)

    def alter(self, known: Entry, entry: Entry) -> None:
        table = self._get(known.database, known.name)
        if table is None:
            raise ConflictError(f"The catalog's table {known.full_name} was dropped meanwhile.", hint="Sync again.")
        changed = {name: value for name, value in table.items() if name not in _READ_ONLY}
        before = table.get("StorageDescriptor", {})
        made = _make_descriptor(entry, entry.location)
        comments = {each["Name"].lower(): each.get("Comment", "") for each in before.get("Columns", ())}
        for column in made["Columns"]:
            column["Comment"] = comments.get(column["Name"].lower(), "")
        serde = {**before.get("SerdeInfo", {}), "SerializationLibrary": entry.serde}
        serde["Parameters"] = {**serde.get("Parameters", {}), **entry.serde_parameters}
        changed["StorageDescriptor"] = {**before, **made, "SerdeInfo": serde}
        changed["Parameters"] = {**table.get("Parameters", {}), **entry.parameters}
        self._call(
            self._client.update_table,
            DatabaseName=known.database,
            TableInput=changed,
            SkipArchive=self._skip_archive,
        )

    def list_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        place = {"DatabaseName": entry.database, "TableName": entry.name}
        if values is None:
            return [_read_partition(each) for each in self._page("get_partitions", "Partitions", **place)]
        found: list[CatalogPartition] = []
        for batch in _cut(values, _MOST_READ):
            asked = [{"Values": list(each)} for each in batch]
            while asked:
                answer = self._call(self._client.batch_get_partition, PartitionsToGet=asked, **place)
                found += map(_read_partition, answer.get("Partitions", ()))
                left = answer.get("UnprocessedKeys", [])
                if len(left) >= len(asked):
                    raise StorageError("Glue does not answer for some partitions.", table=entry.full_name)
                # Glue may answer for a part of a batch only; the rest is asked again as long as it shrinks.
                asked = left
        return found

    def add_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        for batch in _cut(partitions, _MOST_ADDED):
            made = [_make_partition(entry, each) for each in batch]
            request = {"DatabaseName": entry.database, "TableName": entry.name, "PartitionInputList": made}
            answer = self._call(self._client.batch_create_partition, **request)
            _check_answer(answer, entry, harmless="AlreadyExistsException")

    def move_partitions(self, entry: Entry, partitions: Sequence[CatalogPartition]) -> None:
        for batch in _cut(partitions, _MOST_ADDED):
            made = [
                {"PartitionValueList": list(each.values), "PartitionInput": _make_partition(entry, each)}
                for each in batch
            ]
            request = {"DatabaseName": entry.database, "TableName": entry.name, "Entries": made}
            answer = self._call(self._client.batch_update_partition, **request)
            _check_answer(answer, entry)

    def drop_partitions(self, entry: Entry, values: Sequence[tuple[str, ...]]) -> None:
        for batch in _cut(values, _MOST_DROPPED):
            asked = [{"Values": list(each)} for each in batch]
            request = {"DatabaseName": entry.database, "TableName": entry.name, "PartitionsToDelete": asked}
            answer = self._call(self._client.batch_delete_partition, **request)
            _check_answer(answer, entry, harmless="EntityNotFoundException")

    def close(self) -> None:
        self._client.close()

    def _get(self, database: str, name: str) -> dict[str, Any] | None:
        answer = self._find(self._client.get_table, DatabaseName=database, Name=name)
        return None if answer is None else answer["Table"]

    def _find(self, verb: Callable[..., Any], **arguments: Any) -> Any:
        """Call the client; None if it answers that there is no such thing."""
        try:
            return self._call(verb, **arguments)
        except FileMissingError:
            return None

    def _call(self, verb: Callable[..., Any], **arguments: Any) -> Any:
        try:
            return verb(**arguments, **self._catalog)
        except Exception as error:
            raise _make_error(error) from error

    def _page(self, verb: str, key: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        try:
            for page in self._client.get_paginator(verb).paginate(**arguments, **self._catalog):
                yield from page[key]
        except Exception as error:
            raise _make_error(error) from error


def _connect(given: Mapping[str, Any]) -> Any:
    unknown = sorted(set(given) - _OPTIONS)
    if unknown:
        raise InvalidQueryError(
            f"Unknown option of the Glue catalog: {unknown[0][:200]!r}.",
            hint=f"There are {', '.join(sorted(_OPTIONS))}.",
        )
    import boto3

    session = {name: value for name, value in given.items() if name in _SESSION}
    try:
        return boto3.Session(**session).client("glue", endpoint_url=given.get("endpoint_url"))
    except Exception as error:
        raise _make_error(error) from error


def _make_error(error: Exception) -> StorageError | ConflictError:
    code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
    said = f"{type(error).__name__}: {error}"[:1000]
    if code == "AlreadyExistsException":
        return ConflictError(f"Glue has it already: {said}.")
    if code == "EntityNotFoundException":
        return FileMissingError(f"Glue does not have it: {said}.")
    hint = "Name the region: region_name=..., or AWS_DEFAULT_REGION." if "region" in str(error).lower() else None
    return StorageError(f"Glue failed: {said}.", hint=hint)


def _check_answer(answer: Mapping[str, Any], entry: Entry, harmless: str | None = None) -> None:
    """Raise an error if a batch call failed for a partition; the error code ``harmless`` is ignored."""
    for each in answer.get("Errors", ()):
        detail = each.get("ErrorDetail", {})
        if detail.get("ErrorCode") != harmless:
            raise StorageError(
                f"Glue refused a partition: {detail.get('ErrorCode')}: {str(detail.get('ErrorMessage'))[:500]}.",
                table=entry.full_name,
            )


def _make_descriptor(entry: Entry, location: str) -> dict[str, Any]:
    return {
        "Columns": _make_columns(entry.columns),
        "Location": location,
        "InputFormat": entry.input_format,
        "OutputFormat": entry.output_format,
        "SerdeInfo": {"SerializationLibrary": entry.serde, "Parameters": dict(entry.serde_parameters)},
    }


def _make_columns(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [{"Name": each.name, "Type": each.type, "Comment": ""} for each in columns]


def _make_partition(entry: Entry, partition: CatalogPartition) -> dict[str, Any]:
    return {"Values": list(partition.values), "StorageDescriptor": _make_descriptor(entry, partition.location)}


def _read_entry(table: Mapping[str, Any]) -> Entry:
    descriptor = table.get("StorageDescriptor", {})
    serde = descriptor.get("SerdeInfo", {})
    return Entry(
        database=table.get("DatabaseName", ""),
        name=table["Name"],
        location=descriptor.get("Location", ""),
        columns=_read_columns(descriptor.get("Columns", ())),
        partition_columns=_read_columns(table.get("PartitionKeys", ())),
        parameters=table.get("Parameters", {}),
        serde_parameters=serde.get("Parameters", {}),
        input_format=descriptor.get("InputFormat", ""),
        output_format=descriptor.get("OutputFormat", ""),
        serde=serde.get("SerializationLibrary", ""),
    )


def _read_columns(columns: Sequence[Mapping[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(each["Name"], each.get("Type", "")) for each in columns)


def _read_partition(partition: Mapping[str, Any]) -> CatalogPartition:
    return CatalogPartition(tuple(partition["Values"]), partition.get("StorageDescriptor", {}).get("Location", ""))


def _cut(items: Sequence[Any], most: int) -> list[Sequence[Any]]:
    return [items[start : start + most] for start in range(0, len(items), most)]
