"""New records become a base file that readers of every kind take."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.handles.create import InsertTask
from tests.writer.written_tables import Kind, begun, records, row

INSTANT = "20260101000000001"


def task(base: Path, partition: str = "p0/x") -> InsertTask:
    snapshot = open_snapshot(TableFiles.open(Kind(9, True).create(base)))
    facts = begun(snapshot, INSTANT, "deltacommit")
    return InsertTask(facts, 2, partition, "3f2a-0")


def test_rows_come_in_parts(tmp_path: Path) -> None:
    parts = (records([row(i) for i in range(start, start + 3)]) for start in (0, 3))
    result = task(tmp_path).run(parts)
    rows = pq.read_table(tmp_path / result.path, partitioning=None).to_pylist()
    name = result.path.rpartition("/")[2]
    assert name.startswith("3f2a-0_2-77-")
    assert name.endswith(f"_{INSTANT}.parquet")
    assert [each["id"] for each in rows] == [f"k{i}" for i in range(6)]
    assert [each["_hoodie_commit_seqno"] for each in rows] == [f"{INSTANT}_2_{i}" for i in range(6)]
    assert {each["_hoodie_file_name"] for each in rows} == {name}
    assert {each["_hoodie_partition_path"] for each in rows} == {"p0/x"}
    stat = result.stat
    assert (stat.num_writes, stat.num_inserts, stat.prev_commit, stat.log_version) == (6, 6, "null", None)
    assert stat.file_size_in_bytes == (tmp_path / result.path).stat().st_size


def test_the_partition_is_made_one(tmp_path: Path) -> None:
    task(tmp_path).run([records([row(1)])])
    text = (tmp_path / "p0/x/.hoodie_partition_metadata").read_text()
    assert f"commitTime={INSTANT}" in text
    assert "partitionDepth=2" in text


def test_a_value_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    given = records([row(1)])
    given = type(given)(given.rows.drop_columns(["ts"]), given.keys, given.partition_paths)
    with pytest.raises(InvalidTableError):
        task(tmp_path).run([given])
    assert not list(tmp_path.rglob("*.parquet"))
