"""Changes of a log: commits that completed in another order, memory budgets, and the comparison of whole states.

The two ways to fold a log before and after each commit give the same rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.reader.changes import log_changes
from hoodie_py.reader.changes.log_changes import (
    BaseRows,
    Block,
    LogChangeReader,
    LogState,
    LogStates,
    RepeatedKeyError,
    merge_with_base,
)
from hoodie_py.reader.changes.row_changes import RowChanges
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.read_info import ReadOptions, ReadStats
from hoodie_py.table.changes.step_reader import StepReader
from hoodie_py.table.changes.steps import MergedLog, State
from tests.table.changes.change_lakes import KINDS, changes, make, row, times

MERGE_ON_READ = [kind for kind in KINDS if kind[0] == "MERGE_ON_READ"]
COLUMNS = ["id", "ts", "price"]


def test_commits_count_in_the_order_in_which_they_completed(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert([row("a"), row("b")])
    table.upsert([row("a", 5, 5.0)])
    table.upsert([row("a", 3, 3.0), row("b", 3, 3.0)])
    first, second, third = table.timeline.select_writes()
    folder = tmp_path / "t" / ".hoodie" / "timeline"
    late = f"{int(str(third.completion_time)) + 5}"
    (folder / f"{second.request_time}_{second.completion_time}.deltacommit").rename(
        folder / f"{second.request_time}_{late}.deltacommit"
    )
    table = HoodieTable.open(tmp_path / "t")
    start, middle = str(first.completion_time), str(third.completion_time)
    assert times(table) == [start, late, middle]
    one, two = ("u", row("a"), row("a", 3, 3.0)), ("u", row("b"), row("b", 3, 3.0))
    assert changes(table, start, middle) == [one, two]
    assert changes(table, middle, late) == [("u", row("a", 3, 3.0), row("a", 5, 5.0))]
    assert changes(table, start) == sorted([one, two, ("u", row("a", 3, 3.0), row("a", 5, 5.0))], key=repr)


def make_log(place: Path, kind: tuple[str, int], dice: random.Random) -> tuple[HoodieTable, MergedLog]:
    """Write a file group with several commits in its log."""
    table = make(place, kind)
    table.upsert([row(f"k{number}") for number in range(9)])
    for _ in range(4):
        keys = dice.sample(range(12), 4)
        if dice.random() < 0.25:
            table.delete([f"k{key}" for key in keys])
        else:
            table.upsert([row(f"k{key}", dice.randrange(5), float(dice.randrange(9))) for key in keys])
    group = next(each for each in table.file_slices() if each.log_files and each.base_file)
    blocks = [each.request_time for each in table.timeline.select_writes()][1:]
    return table, MergedLog(tuple(blocks), State(group))


def show(found: Iterable[RowChanges]) -> Counter[str]:
    shown: Counter[str] = Counter()
    for each in found:
        rows = zip(each.codes.tolist(), each.before.to_pylist(), each.after.to_pylist(), strict=True)
        shown.update(repr((each.instant, *row)) for row in rows)
    return shown


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.sampled_from(MERGE_ON_READ), st.randoms(use_true_random=False))
def test_budgets_and_whole_states_give_the_same_changes(
    tmp_path_factory: pytest.TempPathFactory, kind: tuple[str, int], dice: random.Random
) -> None:
    table, step = make_log(tmp_path_factory.mktemp("lake") / "t", kind, dice)
    info = table.read_info(step.state.file_slice)

    def read(options: ReadOptions) -> Counter[str]:
        return show(LogChangeReader(step.state.file_slice, info, step.instants, COLUMNS, options=options).read())

    plain = read(ReadOptions())
    assert plain == read(ReadOptions(memory_limit=1)) == read(ReadOptions(memory_limit=2048, batch_rows=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_changes, "_MOST_KEYS_BY_BATCH", 1)
        assert plain == read(ReadOptions(batch_rows=4))
    reader = StepReader(info, COLUMNS, frozenset({"before", "after"}), ReadOptions())
    compared: Counter[str] = Counter()
    for changes_of_one in reader._compare_states(step):
        compared += show([changes_of_one])
    assert plain == compared


def test_a_repeated_key_is_noticed_before_the_first_change(corpus: Callable[[str], Path]) -> None:
    table = HoodieTable.open(str(corpus("duplicate_keys_in_base_mor_v9")))
    group = table.file_slices()[0]
    instants = [each.request_time for each in table.timeline.select_writes()][1:]
    with pytest.raises(RepeatedKeyError):
        next(LogChangeReader(group, table.read_info(group), instants, COLUMNS).read())


TABLES = [
    "basic_mor_v6_part", "commit_time_deletes_mor_v8", "custom_highest_price_updates_mor_v9",
    "event_time_deletes_mor_v6", "event_time_updates_mor_v9", "flink_mor_cdc", "is_deleted_column_mor_v9",
    "logonly_bucket_mor_v9", "many_blocks_one_file_mor_v6", "merge_into_partial_mor_v9",
    "payload_partial_update_mor_v6", "two_ordering_fields_mor_v9",
]  # fmt: skip


@pytest.mark.parametrize("wanted", [1, 2, 9], ids="last {}".format)
@pytest.mark.parametrize("name", TABLES)
def test_going_on_is_beginning_anew(
    corpus: Callable[[str], Path], corpus_case: Callable[[str], dict[str, Any]], name: str, wanted: int
) -> None:
    from integration.corpus_mergers import CORPUS_MERGERS

    table = HoodieTable.open(str(corpus(name)))
    merger = CORPUS_MERGERS.get(corpus_case(name).get("merger") or "")
    for file_slice in table.file_slices():
        info = table.read_info(file_slice)
        log = LogReader(file_slice, info, info.schema.names, merger, ReadOptions(), ReadStats())
        with closing(log):
            blocks = [Block(each.scanned.instant, each.entries, each.partial) for each in log.read_blocks()]
            instants = list(dict.fromkeys(block.instant for block in blocks))[-wanted:]
            states = LogStates(log.strategy, blocks, instants)
            base = BaseRows(None, np.full(len(states.keys), -1, np.int64))
            on, anew = list(states._go_on()), list(states._begin_anew())
            assert [each[0] for each in on] == [each[0] for each in anew]
            for (_, *mine), (_, *theirs) in zip(on, anew, strict=True):
                keys = np.flatnonzero(mine[1].at >= 0)
                assert keys.tolist() == np.flatnonzero(theirs[1].at >= 0).tolist()
                for one, other in zip(mine, theirs, strict=True):
                    assert show_states(log, base, one, keys) == show_states(log, base, other, keys)


def show_states(log: LogReader, base: BaseRows, state: LogState | None, keys: np.ndarray) -> list[Any]:
    return log.store.take(merge_with_base(base, state, keys)).to_pylist()
