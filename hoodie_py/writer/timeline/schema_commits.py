"""Keep the history of a schema-on-read table's schemas, as every write of Java to such a table does.

A commit records the schema with ids as ``latest_schema``. A new version has the commit's own instant as its number.
Before the commit is completed, the whole history is written under its instant to ``.hoodie/.schema/``, in the three
states of an instant (Hudi ``FileBasedInternalSchemaStorageManager``). Readers take the newest history of a completed
commit, so what a lost write left there does not count.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.columns import write_schema_history
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.formats.timeline.instants import COMPLETED, INFLIGHT, REQUESTED, SCHEMA_COMMIT, Instant
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.schema.history import SCHEMA_FOLDER, find_history_file
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.output_schema import OutputSchema


def save_schema_history(now: Snapshot, request_time: str, completion_time: str, schema: OutputSchema) -> None:
    """Write the history under the instant of a write that records a schema with ids. A new version comes first in it.

    Raises:
        CorruptFileError: the table's history is not in Hudi's format.
        CommitStateUnknownError: the store did not say whether it created a file.
        StorageError: the store refused.
    """
    known = find_history_file(now.timeline)
    older = b"" if known is None else read_bounded(now.files, known)
    latest = schema.make_latest(request_time) or ""
    if schema.version is not None:
        before = [] if older else [each for each in (schema.latest, schema.first) if each is not None]
        text = write_schema_history([latest, *before], older)
    else:
        text = older or write_schema_history([latest])
    for state, content in ((REQUESTED, b""), (INFLIGHT, b""), (COMPLETED, text)):
        path = _locate(now.config, Instant(request_time, completion_time, SCHEMA_COMMIT, state))
        now.files.put_if_absent(path, content, unique=bool(content))


def remove_schema_history(files: TableFiles, request_time: str) -> None:
    """Remove the files of a write's schema history."""
    for info in files.list_or_empty(SCHEMA_FOLDER):
        if not info.is_dir and info.name.startswith((f"{request_time}.", f"{request_time}_")):
            files.delete_with_checksum(info.path)


def check_same_columns(before: Snapshot, now: Snapshot, schema: OutputSchema, instant: str | None = None) -> None:
    """Check that the table's columns are still the columns that a write rests on.

    ``instant``: the write's own, if it has one; only columns of earlier instants count then.

    Rows of files are matched with columns by the instant of the file, so a file must have the columns of its instant. A
    write that records the columns it found at first would hide columns that another write has added.

    Raises:
        ConflictError: the columns were altered, or grew.
    """
    _check_growth(before, now, schema, instant)
    if schema.latest is None and not _may_have_ids(before, now):
        return
    found = now.schema if instant is None else resolve_schema(now.timeline, instant)
    if found.latest_schema != schema.latest:
        raise _make_conflict(now)


def _may_have_ids(before: Snapshot, now: Snapshot) -> bool:
    """Say whether columns of a table without ids may have ids by now. Only commits give them: the folder of their
    history is listed if there was one.
    """
    known, found = (each.timeline.list_completed_writes() for each in (before, now))
    return known != found and bool(now.files.list_or_empty(SCHEMA_FOLDER))


def _check_growth(before: Snapshot, now: Snapshot, schema: OutputSchema, instant: str | None) -> None:
    known = {each.request_time for each in before.timeline.list_completed_writes()}
    texts = {schema.base, schema.table}
    for each in reversed(now.timeline.list_completed_writes()):
        if each.request_time in known or (instant is not None and each.request_time >= instant):
            continue
        text = now.timeline.read_metadata(each).schema
        if text and text not in texts:
            if schema.base is None or _list_columns(text) != _list_columns(schema.base):
                raise _make_conflict(now)
            texts.add(text)


def _list_columns(text: str) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in AvroSchema.parse(text).arrow if field.name not in META_FIELDS}


def _make_conflict(now: Snapshot) -> ConflictError:
    return ConflictError(
        "The table's columns were altered since this write began.", hint="Run it again.", table=now.config.name
    )


def _locate(config: TableConfig, instant: Instant) -> str:
    return f"{SCHEMA_FOLDER}/{instant.file_name(config.timeline_layout)}"
