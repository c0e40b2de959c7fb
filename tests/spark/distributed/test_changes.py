"""Updates and merges in Spark's two steps, run here one after the other as Spark's workers run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import Delete, HoodieTable, Insert, Update
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.pipeline.modify import MergeRequest, Modifier
from hoodie_py.writer.timeline.session import WriteSession
from tests.spark.write_engine import HandEngine
from tests.writer.compaction_tables import QUICK
from tests.writer.pipeline.test_modify import KINDS, make, partial_columns, read, row


def modifier(base: Path, **options: str) -> Modifier:
    session = WriteSession.open(open_snapshot(str(base)), options={**QUICK, **options})
    return Modifier(session, None, HandEngine())


@pytest.mark.parametrize(("version", "table_type", "parts"), [KINDS[0], KINDS[3], KINDS[-2]])
def test_the_same_rows_as_in_process(version: int, table_type: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    here = make(tmp_path / "here", version, table_type, parts)
    make(tmp_path / "there", version, table_type, parts)
    sets, where = {"price": "price * 2", "name": "name || '!'"}, "qty > 3"
    here.update(sets, where, options=QUICK)
    modifier(tmp_path / "there").update(sets, where)
    source = [row(1, 5, price=None), row(4, 5), row(20, 5), row(21, 5)]
    clauses: dict[str, Any] = {
        "when_matched": [Delete("source.price is null"), Update({"qty": "target.qty + source.qty"})],
        "when_not_matched": Insert(where="qty > 20"),
        "by_source": Update({"name": "'left'"}, where="qty = 9"),
    }
    here.merge(source, on="id", **clauses, options=QUICK)
    request = MergeRequest("id", *clauses.values())
    modifier(tmp_path / "there").merge(source, request)
    here.delete("qty = 0", options=QUICK)
    modifier(tmp_path / "there").delete("qty = 0")
    there = HoodieTable.open(tmp_path / "there")
    assert read(there) == read(here)
    assert partial_columns(there) == partial_columns(here)


def test_an_error_of_a_worker_leaves_the_table(tmp_path: Path) -> None:
    table = make(tmp_path)
    before = read(table)
    with pytest.raises(InvalidQueryError, match="by zero"):
        modifier(tmp_path).update({"qty": "qty / 0"}, None)
    assert read(table.refresh()) == before
