"""Loads the history of a table's schemas with schema-on-read: all versions, with the ids of their columns.

Such a table keeps all versions of its schema in ``.hoodie/.schema/<instant>[_<completion>].schemacommit``, written
before the commit of that instant (Hudi ``FileBasedInternalSchemaStorageManager``). The newest file whose commit
completed counts; files of pending and rolled back commits do not. If the folder is lost, the versions are collected
from the commits of the active timeline.
"""

from __future__ import annotations

import re

from hoodie_py.errors import locate_errors
from hoodie_py.formats.avro.columns import InternalSchema, parse_internal_schema, parse_schema_history
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.loader import TableTimeline

SCHEMA_FOLDER = f"{METADATA_FOLDER}/.schema"

_FILE_NAME = re.compile(r"(\d{14,17})(?:_\d{14,17})?\.schemacommit", re.ASCII)


def load_schema_history(timeline: TableTimeline) -> tuple[InternalSchema, ...]:
    """Return the versions of the table's schema, oldest first.

    Raises:
        CorruptFileError: a stored history is not in Hudi's format, or contradicts itself.
        StorageError: it cannot be read.
    """
    path = find_history_file(timeline)
    if path is None:
        return _collect_from_commits(timeline)
    with locate_errors(path=path):
        return parse_schema_history(read_bounded(timeline.files, path))


def find_history_file(timeline: TableTimeline) -> str | None:
    """Return the path of the newest history of a completed commit; None if there is none."""
    completed = {each.request_time for each in timeline.list_completed_writes()}
    first_active = min((each.request_time for each in timeline), default="")
    found = []
    for info in timeline.files.list_or_empty(SCHEMA_FOLDER):
        matched = _FILE_NAME.fullmatch(info.name)
        if matched is None or info.is_dir:
            continue
        instant = matched[1]
        if instant in completed or instant < first_active:  # the latter are archived
            found.append((instant, info.path))
    return max(found)[1] if found else None


def _collect_from_commits(timeline: TableTimeline) -> tuple[InternalSchema, ...]:
    writes = timeline.list_completed_writes()
    texts: dict[str, str] = {}
    for instant, metadata in zip(writes, timeline.read_all_metadata(writes), strict=True):
        if metadata.latest_schema is not None:
            texts.setdefault(metadata.latest_schema, instant.request_time)
    versions = {}
    for text, request_time in texts.items():
        with locate_errors(instant=request_time):
            version = parse_internal_schema(text)
        versions[version.version] = version
    return tuple(versions[number] for number in sorted(versions))
