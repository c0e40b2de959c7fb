"""Staged rows: only reported files are read, no file is left, and no reader sees one."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from pyspark.sql.types import LongType, StringType, StructField, StructType

from hoodie_py import CorruptFileError, HoodieTable, HoodieWarning, InvalidQueryError, TableNotFoundError
from hoodie_py.files import TableFiles
from hoodie_py.spark.data_source import HoodieSource
from hoodie_py.spark.staged.batch import WRITE_ID
from hoodie_py.spark.staged.staging import Staging
from hoodie_py.spark.staged.stream import find_last_batch, make_checkpoint
from hoodie_py.table.snapshot import open_snapshot

SCHEMA = StructType([StructField("id", StringType()), StructField("ts", LongType())])
NEW = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts"}


def batch(*ids: str, ts: int = 1) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids), "ts": pa.array([ts] * len(ids), pa.int64())})


def writer(where: Path, overwrite: bool = False, **options: str):
    """Return a pickled copy of a writer, as Spark makes them."""
    source = HoodieSource({"path": str(where), **NEW, **options})
    return pickle.loads(pickle.dumps(source.writer(SCHEMA, overwrite)))


def ids(where: Path) -> list[str]:
    return sorted(HoodieTable.open(where).scan(["id"]).to_arrow()["id"].to_pylist())


def staged(where: Path) -> list[Path]:
    return list(where.rglob("hoodie_py-rows-*"))


def test_a_commit_has_the_attempts_that_were_told_of(tmp_path: Path) -> None:
    one = writer(tmp_path)
    one.write(iter([batch("lost")]))  # an attempt whose end Spark never saw
    told = [one.write(iter([batch("a"), batch("b")])), None, one.write(iter([])), one.write(iter([batch("c")]))]
    assert staged(tmp_path)
    assert not (tmp_path / ".hoodie" / "hoodie.properties").exists()
    pickle.loads(pickle.dumps(one)).commit([pickle.loads(pickle.dumps(each)) for each in told])
    assert ids(tmp_path) == ["a", "b", "c"]
    assert staged(tmp_path) == []
    [commit] = open_snapshot(str(tmp_path)).timeline.list_completed_writes()
    assert open_snapshot(str(tmp_path)).timeline.read_metadata(commit).extra_metadata[WRITE_ID] == one.write_id


def test_later_tasks_count_as_later_rows(tmp_path: Path) -> None:
    one = writer(tmp_path)
    told = [one.write(iter([pa.RecordBatch.from_pydict({"id": ["a"], "ts": [1]})])) for _ in range(2)]
    assert told[0].rows == 1
    one.commit(told)
    assert ids(tmp_path) == ["a"]


def test_overwriting_replaces_the_rows_and_keeps_the_past(tmp_path: Path) -> None:
    for overwrite, names in ((False, ("a", "b")), (True, ("b", "c", "c"))):
        one = writer(tmp_path, overwrite)
        one.commit([one.write(iter([batch(*names)]))])
    assert ids(tmp_path) == ["b", "c"]
    first, second = open_snapshot(str(tmp_path)).timeline.list_completed_writes()
    assert second.action == "replacecommit"
    then = HoodieTable.open(tmp_path).scan(["id"], as_of=first.request_time).to_arrow()
    assert sorted(then["id"].to_pylist()) == ["a", "b"]


def test_a_write_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    one = writer(tmp_path / "t")
    one.abort([one.write(iter([batch("a")])), None])
    assert list((tmp_path / "t").rglob("*")) == []
    one = writer(tmp_path / "t")
    one.commit([one.write(iter([batch("a")]))])
    two = writer(tmp_path / "t")
    two.abort([two.write(iter([batch("b")])), None])
    assert ids(tmp_path / "t") == ["a"]
    assert staged(tmp_path) == []


def test_a_commit_that_fails_leaves_no_staged_rows_and_no_table(tmp_path: Path) -> None:
    one = writer(tmp_path)
    told = [one.write(iter([pa.RecordBatch.from_pydict({"id": pa.array([None], pa.string()), "ts": [1]})]))]
    with pytest.raises(InvalidQueryError, match="null or empty"):
        one.commit(told)
    assert staged(tmp_path) == []
    one.abort(told)
    with pytest.raises(TableNotFoundError):
        open_snapshot(str(tmp_path))


def test_aborting_a_commit_that_landed_says_so(tmp_path: Path) -> None:
    one = writer(tmp_path)
    told = [one.write(iter([batch("a")]))]
    one.commit(told)
    with pytest.warns(HoodieWarning, match="landed"):
        one.abort(told)
    assert ids(tmp_path) == ["a"]


def test_files_that_are_not_whole_are_seen(tmp_path: Path) -> None:
    staging = Staging.choose(TableFiles.open(str(tmp_path)))
    told = staging.write(iter([batch("a"), batch("b")]))
    again = Staging(staging.files, staging.folder).write(iter([batch("a")]))
    wrong = type(told)(again.path, told.rows, again.size)
    with staging.open_rows([wrong]) as rows:
        assert rows is not None
        with pytest.raises(CorruptFileError, match="not whole"):
            rows.read_all()


def test_what_a_killed_spark_left_goes_a_week_later(tmp_path: Path) -> None:
    files = TableFiles.open(str(tmp_path))
    now = int(time.time())
    old, recent = (Staging(files, f".hoodie/.temp/hoodie_py-rows-{at}-abc") for at in (now - 8 * 86400, now - 3600))
    for each in (old, recent):
        each.write(iter([batch("a")]))
    other = tmp_path / ".hoodie" / ".temp" / "20260101000000000"
    other.mkdir()
    Staging.choose(files).remove()
    assert sorted(each.name for each in other.parent.iterdir()) == sorted([other.name, Path(recent.folder).name])


# Streams, as Spark runs them: another copy of the writer commits -----------------------------------------------------


def stream_batch(where: Path, number: int, *names: str, query: str = "q1", **options: str) -> None:
    source = HoodieSource({"path": str(where), **NEW, **options})
    tasks = pickle.loads(pickle.dumps(source.streamWriter(SCHEMA, False)))
    told = tasks.staging.write(iter([batch(*names, ts=number)]), query)
    pickle.loads(pickle.dumps(source)).streamWriter(SCHEMA, False).commit([told, None], number)


def test_a_replayed_batch_writes_nothing(tmp_path: Path) -> None:
    stream_batch(tmp_path, 0, "a")
    stream_batch(tmp_path, 1, "b")
    before = open_snapshot(str(tmp_path)).timeline.list_completed_writes()
    stream_batch(tmp_path, 1, "b", "other")
    stream_batch(tmp_path, 0, "c")
    assert open_snapshot(str(tmp_path)).timeline.list_completed_writes() == before
    assert (ids(tmp_path), staged(tmp_path)) == (["a", "b"], [])
    stream_batch(tmp_path, 0, "d", query="q2")  # another query starts again
    stream_batch(tmp_path, 2, "e")
    assert ids(tmp_path) == ["a", "b", "d", "e"]
    snapshot = open_snapshot(str(tmp_path))
    assert (find_last_batch(snapshot, "q1"), find_last_batch(snapshot, "q2"), find_last_batch(snapshot, "q3")) == (
        2,
        0,
        None,
    )


def test_a_named_writer_goes_on_where_another_query_ended(tmp_path: Path) -> None:
    name = {"hoodie.datasource.write.streaming.checkpoint.identifier": "loader"}
    stream_batch(tmp_path, 3, "a", **name)
    stream_batch(tmp_path, 3, "b", query="q2", **name)
    assert ids(tmp_path) == ["a"]
    assert make_checkpoint("loader", 3) == '{"loader":"3"}'


def test_a_batch_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    source = HoodieSource({"path": str(tmp_path), **NEW})
    tasks = source.streamWriter(SCHEMA, False)
    told = tasks.staging.write(iter([batch("a")]), "q1")
    source.streamWriter(SCHEMA, False).abort([told, None], 0)
    assert staged(tmp_path) == []
    stream_batch(tmp_path, 0, "a")
    assert ids(tmp_path) == ["a"]
