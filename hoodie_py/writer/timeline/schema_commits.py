"""Keep the history of a schema-on-read table's schemas, as every write of Java does that has such a table.

A commit records the schema with ids as ``latest_schema``. Before it is completed, the whole history is written under
its instant to ``.hoodie/.schema/``, in the three states of an instant (Hudi ``FileBasedInternalSchemaStorageManager``).
Readers take the newest history of a completed commit, so that what a lost write left there counts for nothing.
"""

from __future__ import annotations

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.instants import COMPLETED, INFLIGHT, REQUESTED, SCHEMA_COMMIT, Instant
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.schema.history import SCHEMA_FOLDER, find_history_file
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.snapshot import Snapshot


def save_schema_history(now: Snapshot, request_time: str, completion_time: str, latest: str) -> None:
    """Write the history under the instant of a write; ``latest`` is the schema with ids (JSON) that the write records.

    Raises:
        CommitStateUnknownError: the store did not say whether it created a file.
        StorageError: the store refused.
    """
    known = find_history_file(now.timeline)
    text = f'{{"schemas":[{latest}]}}'.encode() if known is None else read_bounded(now.files, known)
    for state, content in ((REQUESTED, b""), (INFLIGHT, b""), (COMPLETED, text)):
        path = _locate(now.config, Instant(request_time, completion_time, SCHEMA_COMMIT, state))
        now.files.put_if_absent(path, content, unique=bool(content))


def remove_schema_history(files: TableFiles, request_time: str) -> None:
    """Remove what a write left of its history."""
    for info in files.list_or_empty(SCHEMA_FOLDER):
        if not info.is_dir and info.name.startswith((f"{request_time}.", f"{request_time}_")):
            files.delete_with_checksum(info.path)


def check_same_columns(now: Snapshot, latest: str | None, instant: str | None = None) -> None:
    """Check that the table's columns are still those that a write rests on, up to its own instant if it has one.

    Rows of files are matched with columns by the instant of the file, so a file must have the columns of its instant.

    Raises:
        ConflictError: the columns were altered.
    """
    if latest is None and not now.files.list_or_empty(SCHEMA_FOLDER):
        return
    found = now.schema if instant is None else resolve_schema(now.timeline, instant)
    if found.latest_schema != latest:
        raise ConflictError(
            "The table's columns were altered since this write began.", hint="Run it again.", table=now.config.name
        )


def _locate(config: TableConfig, instant: Instant) -> str:
    return f"{SCHEMA_FOLDER}/{instant.file_name(config.timeline_layout)}"
