"""Whether new records of a write fill small base files, and how (Hudi ``BaseSparkCommitActionExecutor``,
``HoodieMergeHandleFactory``).

Upserts merge such a file with all their records for it. Inserts append their records below its rows, so keys may occur
twice if the caller allows it (``HoodieConcatHandle``). Bulk inserts, overwrites and writes into buckets never fill.
"""

from __future__ import annotations

from enum import StrEnum

from hoodie_py.reader.merge.merger import Merger, RecordMerger
from hoodie_py.reader.selection import select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.settings import WriteSettings


class Fill(StrEnum):
    """How new records get into an existing base file."""

    NONE = "none"  # not at all
    MERGE = "merge"  # merged by key
    EXTEND = "extend"  # below its rows


def choose_fill(operation: WriteOperation, snapshot: Snapshot, settings: WriteSettings, merger: Merger | None) -> Fill:
    """Return how a write's new records fill small files.

    Raises:
        MergeError: the table needs a merger that was not supplied.
    """
    if settings.index.is_bucket or settings.small_file_bytes <= 0:
        return Fill.NONE
    if operation is WriteOperation.UPSERT:
        return Fill.MERGE
    # Never where changes are captured, unlike in Java: its appended rows have no change data, so that it cannot derive
    # the changes of such a commit.
    if operation is not WriteOperation.INSERT or snapshot.config.cdc_enabled:
        return Fill.NONE
    # Unlike in Java, a merger that decides about new records is always asked; to extend a file would pass it by.
    return Fill.NONE if is_merging_inserts(snapshot, settings, merger) else Fill.EXTEND


def find_custom_merger(snapshot: Snapshot, settings: WriteSettings, merger: Merger | None) -> RecordMerger | None:
    """Return the merger that replaces the built-in modes; None if they merge.

    Raises:
        MergeError: the table needs a merger that was not supplied.
    """
    return select_strategy(snapshot.config, settings.options, merger, writing=True).merger


def has_insert_hook(custom: RecordMerger | None) -> bool:
    """Whether a merger also decides about new records."""
    return custom is not None and type(custom).insert_batch is not RecordMerger.insert_batch


def is_merging_inserts(snapshot: Snapshot, settings: WriteSettings, merger: Merger | None) -> bool:
    """Whether a merger also decides about new records; errors as for ``find_custom_merger``."""
    return has_insert_hook(find_custom_merger(snapshot, settings, merger))
