"""Spark reads, writes and compacts tables of a metadata-only bootstrap as one process does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import HoodieTable
from hoodie_py.spark import read, write
from tests.writer.bootstrapped_tables import Bootstrapped, contents, read_sources
from tests.writer.compaction_tables import leftovers, orphans


@pytest.mark.parametrize("kind", [Bootstrapped(), Bootstrapped(merge_on_read=False)], ids=str)
def test_a_life(spark: Any, kind: Bootstrapped, tmp_path: Path) -> None:
    base, want = kind.create(tmp_path), kind.rows()
    before = read_sources(tmp_path)
    assert {row["id"]: row for row in read(spark, str(base), columns=kind.schema.names).toArrow().to_pylist()} == want
    rows = [kind.row(0, 2, "b"), kind.row(100, at=0)]
    result = write(spark.createDataFrame(pa.Table.from_pylist(rows, kind.schema)), str(base))
    assert (result.rows_inserted, result.rows_updated) == (1, 1)
    want |= {row["id"]: row for row in rows}
    assert contents(base) == want
    write(spark.createDataFrame(pa.Table.from_pylist([kind.row(1, 2)], kind.schema)), str(base), "delete")
    del want["k1"]
    assert contents(base) == want
    if kind.merge_on_read:
        assert HoodieTable.open(base).compact(engine=spark).rows_written == 6  # the new row is in this file
        assert contents(base) == want
    for condition in ("name = 'b'", "part = 'p1'", "_hoodie_record_key > 'k3' and ts = 1"):
        ours = HoodieTable.open(base).scan(kind.schema.names, condition).to_arrow()
        found = read(spark, str(base), kind.schema.names, condition).toArrow()
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, ours.to_pylist()))
    assert read_sources(tmp_path) == before
    assert (orphans(base), leftovers(base)) == ([], [])
