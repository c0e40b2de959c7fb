"""One class decides on every path: log on log, log on base, delete blocks, data deletes, re-inserts, projections."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from hoodie_py import BufferedBatch, RecordMerger
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID, MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import UNAVAILABLE_VALUE
from tests.reader.slices import (
    SCHEMA,
    UNAVAILABLE,
    Merge,
    Version,
    bases,
    config_of,
    logs,
    projected,
    reader_of,
    rows_of,
    sequential,
    write_slice,
)

# ------------------------------------------------------------------------------------------ rules, a record at a time


def commit_time(older: Version, newer: Version) -> Version:
    return newer


def event_time(older: Version, newer: Version) -> Version:
    if older.unordered:
        return older if newer.kind == "block" else newer
    return newer if newer.unordered or newer.ts >= older.ts else older  # type: ignore[operator]


def ranked(older: Version, newer: Version) -> Version:
    if newer.kind == "block":
        return older if older.kind == "row" and older.rank == 0 else newer
    return newer if older.kind == "block" or newer.rank <= older.rank else older  # type: ignore[operator]


def lowest_first(older: Version, newer: Version) -> Version:
    if older.kind == "block" or newer.unordered:
        return newer
    return newer if newer.ts <= older.ts else older  # type: ignore[operator]


class Ranked(RecordMerger):
    """An ordering of its own: the lower rank wins, the newer on a tie; rank 0 outlives deletes without data."""

    strategy_id = "e2000000-0000-4000-8000-000000000001"
    projection_compatible = True

    def mandatory_fields(self, schema: Any, config: Any, props: Any) -> Sequence[str]:
        return ["rank"]

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.record is None:
            return older if not older.is_delete and context.get_value(older, "rank") == 0 else newer
        if older.record is None:
            return newer
        return newer if context.get_value(newer, "rank") <= context.get_value(older, "rank") else older


class RankedInBatches(Ranked):
    """The same with Arrow kernels, and with every column read."""

    projection_compatible = False

    def merge_batch(self, older: BufferedBatch, newer: BufferedBatch, context: Any, props: Any) -> BufferedBatch:
        a, b = older.column("rank"), newer.column("rank")
        pinned = pc.and_(pc.invert(older.is_delete), pc.equal(a, 0).fill_null(False))
        has_older, has_newer = older.rows >= 0, newer.rows >= 0
        by_rank = np.asarray(pc.less_equal(b, a).fill_null(False))
        return newer.where(np.where(has_newer, by_rank | ~has_older, ~np.asarray(pinned)), older)


@dataclass(frozen=True)
class Mode:
    """A table's way of merging, a merger given for the read, and the rule in plain Python."""

    config: TableConfig
    rule: Merge
    merger: type[RecordMerger] | None = None


REVERSE = "org.apache.hudi.common.model.ReverseOrderHoodieRecordPayload"
MODES = {
    "commit time": Mode(config_of(MergeMode.COMMIT_TIME_ORDERING), commit_time),
    "event time": Mode(config_of(MergeMode.EVENT_TIME_ORDERING), event_time),
    "custom": Mode(config_of(), ranked, Ranked),
    "custom in batches": Mode(config_of(), ranked, RankedInBatches),
    "payload": Mode(config_of(merge_strategy_id=PAYLOAD_STRATEGY_ID, payload_class=REVERSE), lowest_first),
}


def row(ts: int, rank: int, v: int) -> Version:
    return Version("k", "row", ts, rank, v)


def flagged(ts: int, rank: int) -> Version:
    return Version("k", "flagged", ts, rank, 90)


def block(ts: int | None = None) -> Version:
    return Version("k", "block", ts)


BASE = [row(5, 5, 1)]
HISTORIES: dict[str, tuple[list[Version], list[Version]]] = {
    "log on log": ([], [row(5, 5, 1), row(6, 4, 2), row(4, 6, 3)]),
    "log on log, tie": ([], [row(5, 5, 1), row(5, 5, 2)]),
    "log on base, higher": (BASE, [row(6, 6, 2)]),
    "log on base, lower": (BASE, [row(4, 4, 2)]),
    "log on base, tie": (BASE, [row(5, 5, 2)]),
    "log on log on base": (BASE, [row(4, 7, 2), row(6, 3, 3), row(5, 4, 4)]),
    "delete block, commit time": (BASE, [block()]),
    "delete block, lower": (BASE, [block(4)]),
    "delete block, equal": (BASE, [block(5)]),
    "delete block, higher": (BASE, [block(6)]),
    "delete block on a log row": ([], [row(5, 5, 1), block(4), block(6)]),
    "delete block on a pinned row": ([row(5, 0, 1)], [block(9), block()]),
    "data delete, higher": (BASE, [flagged(6, 6)]),
    "data delete, lower": (BASE, [flagged(4, 4)]),
    "data delete on a log row": (BASE, [row(6, 4, 2), flagged(6, 4)]),
    "re-insert after a commit-time delete": (BASE, [block(), row(6, 4, 2)]),
    "re-insert after a commit-time delete, lower": (BASE, [block(), row(4, 6, 2)]),
    "re-insert after a delete block": (BASE, [block(7), row(8, 4, 2)]),
    "re-insert after a delete block, lower": (BASE, [block(7), row(6, 4, 2)]),
    "re-insert after a data delete": (BASE, [flagged(6, 4), row(7, 3, 2)]),
    "re-insert after a data delete, lower": (BASE, [flagged(6, 4), row(5, 6, 2)]),
    "re-insert and delete again": (BASE, [block(), row(6, 4, 2), flagged(7, 3), row(8, 2, 4), block(9)]),
    "re-insert in the log only": ([], [row(5, 5, 1), block(), row(6, 4, 2)]),
    "delete of nothing": ([], [block(), flagged(5, 5)]),
}
PROJECTIONS: dict[str, list[str]] = {
    "every column": SCHEMA.names,
    "neither key nor ordering": ["v"],
    "key only": ["_hoodie_record_key"],
    "ordering, no key": ["s", "ts"],
    "key and ordering": ["ts", "_hoodie_record_key", "v"],
    "what the custom merger looks at": ["rank"],
    "no column": [],
}
BYSTANDER = Version("other", "row", 1, 1, 77)


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("mode", MODES)
def test_the_ordering_is_respected_across_updates_and_deletes(
    tmp_path: Path, mode: str, history: str, projection: str
) -> None:
    base, log = HISTORIES[history]
    columns, how = PROJECTIONS[projection], MODES[mode]
    base = [*base, BYSTANDER]
    written = write_slice(tmp_path, base, log)
    reader = reader_of(tmp_path, written, how.config, columns=columns, merger=how.merger)
    expected = projected(sequential(base, log, how.rule), columns)
    if columns:
        assert rows_of(reader) == expected
    else:
        assert sum(batch.num_rows for batch in reader.to_batches()) == len(expected)


# ------------------------------------------------------------------------------- random histories, every size of batch


class Tangled(RecordMerger):
    """Neither associative nor commutative; changes data and ordering, and deletes some results."""

    strategy_id = "e2000000-0000-4000-8000-000000000002"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        a, b = context.get_value(older, "v") or 0, context.get_value(newer, "v") or 0
        if newer.record is None:
            return older if older.record is not None and a % 3 == 0 else newer
        merged = context.replace(newer, v=(2 * a - b) % 101, ts=(a + b) % 7)
        return context.delete(merged) if (2 * a - b) % 5 == 0 else merged


def tangled(older: Version, newer: Version) -> Version:
    a, b = (0 if side.kind == "block" else side.v or 0 for side in (older, newer))
    if newer.kind == "block":
        return older if older.kind != "block" and a % 3 == 0 else newer
    gone = newer.is_delete or (2 * a - b) % 5 == 0
    return replace(newer, kind="flagged" if gone else "row", v=(2 * a - b) % 101, ts=(a + b) % 7)


def without_flag(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the column that the reference uses for its own purposes."""
    return [{name: value for name, value in row.items() if name != "_hoodie_is_deleted"} for row in rows]


COLUMNS = [name for name in SCHEMA.names if name != "_hoodie_is_deleted"]


@given(bases(), logs())
@settings(max_examples=40)
def test_a_merger_that_is_not_associative_equals_a_sequential_fold(base: list[Version], log: list[Version]) -> None:
    expected = projected(sequential(base, log, tangled), COLUMNS)
    for size in range(1, max(len(base), 1) + 1):
        with tempfile.TemporaryDirectory() as name:
            written = write_slice(Path(name), base, log, row_group_rows=size)
            reader = reader_of(Path(name), written, config_of(), columns=COLUMNS, merger=Tangled, batch_rows=size)
            assert rows_of(reader) == expected


# ---------------------------------------------------------------------------------- the built-in modes, written plainly


class PlainCommitTime(RecordMerger):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer

    @staticmethod
    def newer_wins(older: Any, newer: Any) -> bool:
        return True


class PlainEventTime(RecordMerger):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer if self.newer_wins(older, newer) else older

    @staticmethod
    def newer_wins(older: Any, newer: Any) -> bool:
        if older.is_commit_time_delete:
            return newer.record is not None
        return newer.is_commit_time_delete or newer.ordering_value >= older.ordering_value


class PlainPartial(RecordMerger):
    """A partial update mode: what the higher version does not say, the lower one gives."""

    def __init__(self, mode: type[PlainCommitTime | PlainEventTime], defaults: Mapping[str, Any]) -> None:
        self.mode = mode
        self.defaults = defaults

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        high, low = (newer, older) if self.mode.newer_wins(older, newer) else (older, newer)
        if high.is_delete or low.is_delete:
            return high
        unsaid = [name for name in SCHEMA.names if self.is_unsaid(name, context.get_value(high, name), props)]
        filled = context.replace(high, **{name: context.get_value(low, name) for name in unsaid})
        return replace(filled, ordering_value=high.ordering_value)

    def is_unsaid(self, name: str, value: Any, props: Any) -> bool:
        raise AssertionError


class PlainIgnoreDefaults(PlainPartial):
    def is_unsaid(self, name: str, value: Any, props: Any) -> bool:
        return value == self.defaults.get(name)


class PlainFillUnavailable(PlainPartial):
    def is_unsaid(self, name: str, value: Any, props: Any) -> bool:
        return isinstance(value, str) and value == props[UNAVAILABLE_VALUE]


DEFAULTS = {"v": 0}
BY_COMMIT, BY_EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING
PLAIN: dict[str, tuple[TableConfig, RecordMerger]] = {
    "commit time": (config_of(BY_COMMIT), PlainCommitTime()),
    "event time": (config_of(BY_EVENT), PlainEventTime()),
    "commit time, ignoring defaults": (
        config_of(BY_COMMIT, partial_update_mode="IGNORE_DEFAULTS"),
        PlainIgnoreDefaults(PlainCommitTime, DEFAULTS),
    ),
    "event time, ignoring defaults": (
        config_of(BY_EVENT, partial_update_mode="IGNORE_DEFAULTS"),
        PlainIgnoreDefaults(PlainEventTime, DEFAULTS),
    ),
    "commit time, filling what is unavailable": (
        config_of(BY_COMMIT, partial_update_mode="FILL_UNAVAILABLE"),
        PlainFillUnavailable(PlainCommitTime, DEFAULTS),
    ),
    "event time, filling what is unavailable": (
        config_of(BY_EVENT, partial_update_mode="FILL_UNAVAILABLE"),
        PlainFillUnavailable(PlainEventTime, DEFAULTS),
    ),
}


@pytest.mark.parametrize("mode", PLAIN)
@given(base=bases(), log=logs())
@settings(max_examples=40)
def test_built_in_modes_equal_plain_mergers(mode: str, base: list[Version], log: list[Version]) -> None:
    config, merger = PLAIN[mode]
    with tempfile.TemporaryDirectory() as name:
        written = write_slice(Path(name), base, log, row_group_rows=2)
        built_in = reader_of(Path(name), written, config, defaults=DEFAULTS, batch_rows=2)
        plain = reader_of(Path(name), written, config, defaults=DEFAULTS, merger=merger)
        assert rows_of(built_in) == rows_of(plain)


def test_the_modes_tell_the_samples_apart() -> None:
    """The random histories reach every rule: placeholders, nulls and defaults in text and numbers."""
    base = [Version("a", ts=1, v=3, s="x")]
    log = [Version("a", ts=2, v=0, s=UNAVAILABLE), Version("a", ts=3, v=0, s=UNAVAILABLE)]
    seen = set()
    for config, merger in PLAIN.values():
        with tempfile.TemporaryDirectory() as name:
            written = write_slice(Path(name), base, log)
            seen.add(str(rows_of(reader_of(Path(name), written, config, defaults=DEFAULTS, merger=merger))))
    assert len(seen) == 3
