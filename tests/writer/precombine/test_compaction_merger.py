"""Which merger a compaction takes: the table's own, another one only where the user says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.errors import InvalidQueryError
from integration.corpus_mergers import CORPUS_MERGERS
from tests.writer.compaction_tables import QUICK, rows, writable
from tests.writer.written_tables import Kind, contents, row

EVENT_TIME = "basic_mor_v9_part"
CUSTOM = "custom_highest_price_updates_mor_v9"
INLINE = "hoodie.compact.inline"


class First(RecordMerger):
    """The older version stays, which is no table's rule here."""

    strategy_id = "99999999-0000-0000-0000-000000000001"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older


class EventTimeByName(First):
    """Has the id of a built-in mode, which is no claim to it."""

    strategy_id = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"


@pytest.mark.parametrize("merger", [First, First(), EventTimeByName, CORPUS_MERGERS["highest_price"]])
@pytest.mark.parametrize("step", ["compact", "run_compaction"])
def test_another_merger_is_refused(step: str, merger: Any, tmp_path: Path) -> None:
    table = HoodieTable.open(writable(EVENT_TIME, tmp_path))
    instant = table.schedule_compaction(options=QUICK) if step == "run_compaction" else None
    before = sorted(path.name for path in tmp_path.rglob("*"))
    given = (instant,) if instant else ()
    with pytest.raises(InvalidQueryError, match=r"not the merger of this table, which merges by EVENT_TIME.*override_"):
        getattr(table, step)(*given, merger=merger, options=QUICK)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before, "not even a plan is made"


def test_a_merger_of_another_strategy_is_refused_on_a_table_that_names_one(tmp_path: Path) -> None:
    table = HoodieTable.open(writable(CUSTOM, tmp_path))
    with pytest.raises(InvalidQueryError, match="First is not the merger of this table, which has merge strategy 6b1f"):
        table.compact(merger=First, options=QUICK)
    with pytest.raises(InvalidQueryError, match="must be a RecordMerger"):
        table.compact(merger=dict, options=QUICK)  # type: ignore[arg-type]
    assert table.compact(merger=CORPUS_MERGERS["highest_price"], options=QUICK).file_groups


@pytest.mark.parametrize("name", [EVENT_TIME, CUSTOM])
def test_another_merger_decides_where_the_user_says_so(name: str, tmp_path: Path) -> None:
    table = HoodieTable.open(writable(name, tmp_path))
    wanted = table.scan(merger=First).to_arrow().num_rows
    table.compact(merger=First, override_merger=True, options=QUICK)
    assert sum(rows(table.refresh(), "read_optimized").values()) == wanted


def test_a_compaction_inside_a_write_merges_as_readers_do(tmp_path: Path) -> None:
    kind = Kind(9, merge_on_read=True, partitioned=False)
    table = HoodieTable.open(kind.create(tmp_path / "t"))
    table.upsert([row(1, 1, "old")], options=QUICK)
    inline = {**QUICK, INLINE: True, "hoodie.compact.inline.max.delta.commits": 1}
    result = table.upsert([row(1, 2, "new")], options=inline, merger=First)
    assert result.compaction is not None
    assert contents(table, query_type="read_optimized") == contents(table) == {"k1": (2, "new")}
