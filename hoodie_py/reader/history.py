"""The history of one record in one file slice: its versions in merge order, the result of each merge, and their fates.

It calls the strategy of a read, one pair at a time, so it shows what a read does. A version that won its own merge may
be replaced by a later one; one that lost may have the very values of the row that won.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import CorruptFileError, MergeError
from hoodie_py.formats.names import META_FIELDS_WITH_OPERATION
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
    """One merge: the version that was added, the side that won ("older", "newer" or "merged"), and the reason.

    ``fate``: what became of the version after all merges: "stays", "merged" (a part of it stays), "loses", "replaced"
    (it won, and a later step took its place) or "same" (it lost or was replaced, but the final row has the same
    values). ``by``: number, from 1 on, of the step whose version stays instead; None if several versions make up the
    row, or none.
    """

    version: Version
    winner: str
    reason: str
    fate: str = "stays"
    by: int | None = None


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
    steps = trace.list_steps()
    if not steps:
        return None
    return RecordHistory(key, file_slice.partition_path, file_slice.file_id, steps, trace.read_outcome())


class _Trace:
    """Merges one key's versions in order and records each step."""

    def __init__(self, log: LogReader, key: str) -> None:
        self._log = log
        self._key = key
        self._strategy: MergeStrategy = log.strategy
        self._state: BufferedBatch | None = None
        self._made_of: frozenset[int] = frozenset()  # the steps whose versions are in the state
        self._steps: list[Step] = []

    def add(self, version: Version, record: BufferedBatch, *, partial: bool) -> None:
        """Merge the next log version."""
        if partial:
            self._strategy = self._strategy.switch_to_partial()
        older = self._state
        self._state = record if older is None else self._merge(older, record, final=False)
        self._note(Step(version, *_explain_merge(older, record, self._state, self._strategy)))

    def add_base(self, version: Version, record: BufferedBatch) -> None:
        """Merge the log's result with the base row, which is the older side."""
        newer = self._state
        self._state = record if newer is None else self._merge(record, newer, final=True)
        if newer is None:
            self._note(Step(version, "newer", "the only version"))
            return
        winner, reason = _explain_merge(record, newer, self._state, self._strategy, is_older_told=True)
        self._note(Step(version, {"older": "newer", "newer": "older"}.get(winner, winner), reason))

    def _note(self, step: Step) -> None:
        number = len(self._steps)
        self._steps.append(step)
        self._made_of = {"newer": frozenset({number}), "older": self._made_of}.get(
            step.winner, self._made_of | {number}
        )

    def list_steps(self) -> tuple[Step, ...]:
        """Return the steps with the fates of their versions."""
        whole = next(iter(self._made_of)) if len(self._made_of) == 1 else None
        shown = None if self._state is None or self._state.deletes[0] else _read_values(self._state)
        return tuple(
            replace(step, fate="stays" if number == whole else "merged")
            if number in self._made_of
            else replace(step, fate=_find_fate(step, shown), by=None if whole is None else whole + 1)
            for number, step in enumerate(self._steps)
        )

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
    """Return the key's row of a base file; whole rows are read only from the row group that has it."""
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


def _find_fate(step: Step, shown: dict[str, Any] | None) -> str:
    """Return the fate of a version that is not in the final row."""
    values = step.version.values
    if shown is not None and values is not None and not step.version.is_delete and _is_alike(values, shown):
        return "same"
    return "loses" if step.winner == "older" else "replaced"


def _is_alike(values: dict[str, Any], shown: dict[str, Any]) -> bool:
    """Whether two rows have the same values, apart from the columns that Hudi adds, which describe the write."""
    return _list_texts(values) == _list_texts(shown)


def _list_texts(values: dict[str, Any]) -> list[str]:
    """Return names and values as texts: a NaN equals a NaN there."""
    return [f"{name}={value!r}" for name, value in values.items() if name not in META_FIELDS_WITH_OPERATION]


def _explain_merge(
    older: BufferedBatch | None,
    newer: BufferedBatch,
    result: BufferedBatch,
    strategy: MergeStrategy,
    *,
    is_older_told: bool = False,
) -> tuple[str, str]:
    """Return which side won a merge, and the reason in a few words.

    ``is_older_told``: name the older side's ordering value first.
    """
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
    first, second = (older, newer) if is_older_told else (newer, older)
    sides = f"{first.order.get_value(0)} against {second.order.get_value(0)}"
    reason = f"ordering value {sides}"
    return winner, f"{reason}, completed from the other version" if winner == "merged" else reason


def _find_winner(older: BufferedBatch, newer: BufferedBatch, result: BufferedBatch) -> str:
    if _is_same(newer, result):
        return "newer"
    return "older" if _is_same(older, result) else "merged"


def _is_same(side: BufferedBatch, result: BufferedBatch) -> bool:
    alike = side.rows[0] == result.rows[0] and side.deletes[0] == result.deletes[0]
    return bool(alike and side.order.get_value(0) == result.order.get_value(0))
