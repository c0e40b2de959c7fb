"""New records become a base file, or come below the rows of one."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import FileMissingError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.handles.create import ExtendTask, InsertTask
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, Kind, begun, records, row

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


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_commit_makes_folders_partitions(tmp_path: Path, kind: Kind) -> None:
    done = HoodieTable.open(kind.create(tmp_path)).insert([row(1)], options=QUICK)
    [metafile] = tmp_path.rglob(".hoodie_partition_metadata")
    assert metafile.parent == next(tmp_path.rglob("*.parquet")).parent
    text = metafile.read_text()
    assert f"commitTime={done.instant}" in text
    assert f"partitionDepth={len(metafile.parent.relative_to(tmp_path).parts)}" in text


def test_a_value_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    given = records([row(1)])
    given = type(given)(given.rows.drop_columns(["ts"]), given.keys, given.partition_paths)
    with pytest.raises(InvalidTableError):
        task(tmp_path).run([given])
    assert not list(tmp_path.rglob("*.parquet"))


LATE_INSTANT = "29990101000000001"


def extend_task(base: Path, kind: Kind) -> ExtendTask:
    HoodieTable.open(kind.create(base)).insert([row(0), row(2)], options=QUICK)
    snapshot = open_snapshot(TableFiles.open(base))
    facts = begun(snapshot, LATE_INSTANT, "deltacommit" if kind.merge_on_read else "commit")
    [old] = snapshot.view.list_slices()
    return ExtendTask(facts, 2, old, snapshot.read_info(old).as_stored(facts.schema.arrow, facts.schema.defaults))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_new_rows_come_below_the_old_ones(tmp_path: Path, kind: Kind) -> None:
    extending = extend_task(tmp_path, kind)
    base = extending.file_slice.base_file
    assert base is not None
    before = pq.read_table(tmp_path / base.path, partitioning=None).to_pylist()
    parts = (records([row(i, 9, "new") for i in some], partitioned=kind.partitioned) for some in ((2, 4), (6,)))
    result = extending.run(parts)
    after = pq.read_table(tmp_path / result.path, partitioning=None).to_pylist()
    name = result.path.rpartition("/")[2]
    assert after[:2] == [{**each, "_hoodie_file_name": name} for each in before]
    assert [(each["id"], each["name"]) for each in after[2:]] == [("k2", "new"), ("k4", "new"), ("k6", "new")]
    assert [each["_hoodie_commit_seqno"] for each in after[2:]] == [f"{LATE_INSTANT}_2_{i}" for i in range(3)]
    assert {each["_hoodie_commit_time"] for each in after[2:]} == {LATE_INSTANT}
    stat = result.stat
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (5, 3, 0, 0)
    assert (stat.file_id, stat.prev_commit, stat.prev_base_file) == (base.file_id, base.instant, base.name)
    assert stat.file_size_in_bytes == (tmp_path / result.path).stat().st_size
    assert result.bytes_read == base.size
    markers = {each.name for each in (tmp_path / ".hoodie/.temp").rglob("*.marker.*")}
    assert markers == {f"{name}.marker.MERGE"}, "who undoes the write deletes the file"


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    extending = extend_task(tmp_path, Kind(9, True))
    base = extending.file_slice.base_file
    assert base is not None
    given = records([row(4)])
    with pytest.raises(InvalidTableError):
        extending.run([type(given)(given.rows.drop_columns(["ts"]), given.keys, given.partition_paths)])
    (tmp_path / base.path).unlink()
    with pytest.raises(FileMissingError, match=base.file_id):
        extending.run([given])
    assert not list(tmp_path.rglob("*.parquet"))
