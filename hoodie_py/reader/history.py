"""The history of one record in one file slice: its versions in merge order, and the result of each merge.

The rule: it calls the strategy of a read, one pair at a time, so it shows what a read does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import CorruptFileError, MergeError
from hoodie_py.reader.base.bootstrap import open_base_file
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.base.key_filter import KeyFilter
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.merge.strategies import CommitTimeStrategy, MergeStrategy
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats, WantedKeys
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import DEFAULT_ORDERING
from hoodie_py.reader.record.row_store import NO_ROW
from hoodie_py.reader.schema_evolution.by_name import Conformer

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a record."""

    source: str  # "base file", "data block" or "delete block"
    path: str  # of the file, relative to the table
    offset: int | None  # of the block's first byte; None in a base file
    instant: str
    ordering: Any  # None where commit time decides
    operation: str | None  # I, -U, U, D or None
    is_delete: bool
    partial: bool  # lacks columns
    values: dict[str, Any] | None  # by column; None without data


@dataclass(frozen=True, slots=True)
class Step:
    """One merge: the version that was added, the side that won ("older", "newer" or "merged"), and the reason."""

    version: Version
    winner: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecordHistory:
    """The history of one key in one file slice."""

    key: str
    partition_path: str
    file_id: str
    steps: tuple[Step, ...]  # the log versions in merge order, then the merge with the base row if there is one
    outcome: dict[str, Any] | None  # the row that a snapshot shows; None if it shows no row


def trace_record_history(
    file_slice: FileSlice,
    info: ReadInfo,
    key: str,
    options: ReadOptions | None = None,
    merger: Merger | None = None,
) -> RecordHistory | None:
    """Trace one key through a file slice; None if the slice has no version of it.

    Raises:
        HoodieError: reading the slice fails.
    """
    settings = options or ReadOptions()
    log = LogReader(file_slice, info, info.schema.names, merger, settings, ReadStats())
    trace = _Trace(log, key)
    for version, record, partial in _iterate_log_versions(log, key):
        trace.add(version, record, partial=partial)
    base = _find_base_version(log, file_slice, info, key, settings)
    if base is not None:
        trace.add_base(*base)
    if not trace.steps:
        return None
    return RecordHistory(key, file_slice.partition_path, file_slice.file_id, tuple(trace.steps), trace.read_outcome())


class _Trace:
    """Merges one key's versions in order and records each step."""

    def __init__(self, log: LogReader, key: str) -> None:
        self._log = log
        self._key = key
        self._strategy: MergeStrategy = log.strategy
        self._state: BufferedBatch | None = None
        self.steps: list[Step] = []

    def add(self, version: Version, record: BufferedBatch, *, partial: bool) -> None:
        """Merge the next log version."""
        if partial:
            self._strategy = self._strategy.switch_to_partial()
        older = self._state
        self._state = record if older is None else self._merge(older, record, final=False)
        self.steps.append(Step(version, *_explain_merge(older, record, self._state, self._strategy)))

    def add_base(self, version: Version, record: BufferedBatch) -> None:
        """Merge the log's result with the base row, which is the older side."""
        newer = self._state
        self._state = record if newer is None else self._merge(record, newer, final=True)
        winner, reason = "newer", "the only version"
        if newer is not None:
            winner, reason = _explain_merge(record, newer, self._state, self._strategy)
        self.steps.append(Step(version, {"older": "newer", "newer": "older"}.get(winner, winner), reason))

    def read_outcome(self) -> dict[str, Any] | None:
        """Return the final row; None if the record is deleted."""
        if self._state is None or self._state.deletes[0]:
            return None
        return _read_values(self._state)

    def _merge(self, older: BufferedBatch, newer: BufferedBatch, *, final: bool) -> BufferedBatch:
        try:
            return self._strategy.final_merge(older, newer) if final else self._strategy.delta_merge(older, newer)
        except MergeError as error:
            error.locate(key=self._key, file_group=self._log.file_slice.file_id)
            raise


def _iterate_log_versions(log: LogReader, key: str) -> Iterator[tuple[Version, BufferedBatch, bool]]:
    for block in log.read_blocks():
        matches = np.flatnonzero(block.entries.keys.to_numpy(zero_copy_only=False) == key)
        for at in matches:
            record = block.entries.take(np.array([at]))
            kind = "delete block" if record.rows[0] == NO_ROW else "data block"
            scanned = block.scanned
            yield (
                _make_version(kind, scanned.path, scanned.block.offset, scanned.instant, record, partial=block.partial),
                record,
                block.partial,
            )


def _find_base_version(
    log: LogReader, file_slice: FileSlice, info: ReadInfo, key: str, options: ReadOptions
) -> tuple[Version, BufferedBatch] | None:
    if file_slice.base_file is None:
        return None
    base = open_base_file(replace(info, keys=WantedKeys((key,))), file_slice.base_file, options)
    row = _find_base_row(log, base, info, key)
    if row is None:
        return None
    record = BufferedBatch.of_rows(log.context, log.store.add(row), row, None)
    return _make_version("base file", base.path, None, file_slice.base_file.instant, record, partial=False), record


def _find_base_row(log: LogReader, base: OpenBaseFile, info: ReadInfo, key: str) -> pa.RecordBatch | None:
    """Return the key's row of a base file; whole rows are only read of the row group that has it."""
    if not log.keys.virtual and not KeyFilter(pa.array([key])).may_hold(base.key_facts, base.num_rows):
        return None
    names = {find_top_level_name(info.schema, name) for name in log.keys.columns}
    key_schema = pa.schema([field for field in info.schema if field.name in names])
    stored = pa.schema([field for field in info.schema if field.name in base.columns])
    conform = Conformer(log.schema, {**info.defaults, **info.fallbacks})
    for group in range(len(base.group_rows)):
        row = 0
        for batch in base.read_batches(key_schema, _BATCH_ROWS, [group]):
            found = np.flatnonzero(log.keys.read_keys(batch).to_numpy(zero_copy_only=False) == key)
            if len(found):
                return conform(_read_row(base, stored, group, row + int(found[0])))
            row += batch.num_rows
    return None


def _read_row(base: OpenBaseFile, schema: pa.Schema, group: int, row: int) -> pa.RecordBatch:
    for batch in base.read_batches(schema, _BATCH_ROWS, [group]):
        if row < batch.num_rows:
            return batch.slice(row, 1)
        row -= batch.num_rows
    raise CorruptFileError("A row group has fewer rows than its key column.", path=base.path)


def _make_version(
    source: str, path: str, offset: int | None, instant: str, record: BufferedBatch, *, partial: bool
) -> Version:
    ordering = record.order.get_value(0) if record.order.parts else DEFAULT_ORDERING
    return Version(
        source,
        path,
        offset,
        instant,
        None if ordering is DEFAULT_ORDERING else ordering,
        record.operation[0].as_py(),
        bool(record.deletes[0]),
        partial,
        None if record.rows[0] == NO_ROW else _read_values(record),
    )


def _read_values(record: BufferedBatch) -> dict[str, Any]:
    """Return a record's data without the columns that its partial row lacks."""
    row: dict[str, Any] = record.context.store.take(record.rows).to_pylist()[0]
    return {name: value for name, value in row.items() if record.has_values(name)[0]}


def _explain_merge(
    older: BufferedBatch | None, newer: BufferedBatch, result: BufferedBatch, strategy: MergeStrategy
) -> tuple[str, str]:
    """Return which side won a merge, and the reason in a few words."""
    if older is None:
        return "newer", "first version in the log"
    winner = _find_winner(older, newer, result)
    if isinstance(strategy, CustomStrategy):
        return winner, "the merger decided"
    if newer.commit_time_deletes[0]:
        return winner, "a delete without ordering value wins" if winner == "newer" else "already deleted"
    if isinstance(strategy, CommitTimeStrategy) or not newer.order.parts:
        return winner, "the later commit wins"
    if older.commit_time_deletes[0]:
        dropped = "a delete block has nothing to add to a delete without ordering value"
        return winner, "the delete before it had no ordering value" if winner == "newer" else dropped
    sides = f"{newer.order.get_value(0)} against {older.order.get_value(0)}"
    reason = f"ordering value {sides}"
    return winner, f"{reason}, completed from the other version" if winner == "merged" else reason


def _find_winner(older: BufferedBatch, newer: BufferedBatch, result: BufferedBatch) -> str:
    if _is_same(newer, result):
        return "newer"
    return "older" if _is_same(older, result) else "merged"


def _is_same(side: BufferedBatch, result: BufferedBatch) -> bool:
    alike = side.rows[0] == result.rows[0] and side.deletes[0] == result.deletes[0]
    return bool(alike and side.order.get_value(0) == result.order.get_value(0))
