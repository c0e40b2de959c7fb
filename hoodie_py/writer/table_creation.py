"""Making a table: its folders, then its properties file, which is what makes it one.

Of several who make the same table at once exactly one succeeds. The folder of the archived timeline holds an empty
file from the start, as object stores have no empty folders and Java lists the timeline before anything is in it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from hoodie_py.errors import ConflictError, FileMissingError, InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.formats.properties import format_properties
from hoodie_py.formats.table_config import PROPERTIES_BACKUP_FILE, PROPERTIES_FILE, TableConfig
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.table.timeline_loader import METADATA_FOLDER
from hoodie_py.writer.new_table import NewTable

PLACEHOLDER = ".keep"


def create_table(
    uri: str | PathLike[str],
    schema: pa.Schema,
    *,
    record_key: str | Sequence[str],
    ordering: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] = (),
    table_type: str = "MERGE_ON_READ",
    table_version: int = 9,
    name: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
    merge_mode: str | None = None,
    merge_strategy_id: str | None = None,
    merger: RecordMerger | type[RecordMerger] | None = None,
    key_generator: str | None = None,
) -> TableFiles:
    """Make a table without rows and return its files.

    Arguments and errors as for ``HoodieTable.create``.
    """
    files = TableFiles.open(fspath(uri), storage_options)
    new = NewTable(
        name=name if name is not None else files.uri.rstrip("/").rsplit("/", 1)[-1],
        schema=_schema(schema),
        record_key=_names(record_key),
        ordering=_names(ordering or ()),
        partition_by=_names(partition_by),
        table_type=table_type,
        version=table_version,
        merge_mode=merge_mode,
        merge_strategy_id=_strategy(merge_strategy_id, merger),
        key_generator=key_generator,
        properties={key: _text(value) for key, value in (properties or {}).items()},
    )
    stored = new.stored()
    _refuse_existing(files)
    config = TableConfig.from_properties(stored)
    if config.timeline_layout > 1:
        files.put(f"{config.history_dir()}/{PLACEHOLDER}", b"")
    now = datetime.now(UTC).isoformat()
    content = format_properties(stored, comment=f"Properties saved on {now}\nMade by hoodie_py, {uuid.uuid4()}")
    try:
        files.put_if_absent(f"{METADATA_FOLDER}/{PROPERTIES_FILE}", content, unique=True)
    except ConflictError as error:
        raise _exists(files) from error
    return files


def _refuse_existing(files: TableFiles) -> None:
    try:
        found = {info.name for info in files.list(METADATA_FOLDER)}
    except FileMissingError:
        return
    if found & {PROPERTIES_FILE, PROPERTIES_BACKUP_FILE}:
        raise _exists(files)


def _exists(files: TableFiles) -> ConflictError:
    return ConflictError(
        "There is a Hudi table already.",
        hint="Open it with HoodieTable.open, or choose another place.",
        table=files.uri,
    )


def _schema(schema: Any) -> pa.Schema:
    """Take a schema, or anything that exports one."""
    if isinstance(schema, pa.Schema):
        return schema
    if hasattr(schema, "__arrow_c_schema__"):
        return pa.schema(schema)
    raise InvalidQueryError(f"schema must be an Arrow schema, not {type(schema).__name__}.")


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    names = given.split(",") if isinstance(given, str) else given
    return tuple(each.strip() for each in names if each.strip())


def _strategy(strategy_id: str | None, merger: RecordMerger | type[RecordMerger] | None) -> str | None:
    if merger is None:
        return strategy_id
    named = getattr(merger, "strategy_id", None)
    if not named:
        raise InvalidQueryError(f"The merger {merger!r} has no strategy_id, so the table cannot name it.")
    if strategy_id not in (None, named):
        raise InvalidQueryError("merger and merge_strategy_id name different mergers.", hint="Give one of them.")
    return str(named)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
