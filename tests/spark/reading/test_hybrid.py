"""Spark's own Parquet reader reads a file only if it sees the same rows."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import HoodieTable, ScanTask
from hoodie_py.spark.load_options import LoadOptions
from hoodie_py.spark.reading import hybrid
from hoodie_py.spark.reading.hybrid import find_plain_file


@pytest.fixture
def task(corpus_copy: Callable[[str], Path]) -> ScanTask:
    """A base file in partition p0 without log files."""
    scan = HoodieTable.open(str(corpus_copy("basic_cow_v9_part"))).scan()
    return next(each for each in scan.tasks() if each.file_slice.partition_path == "p0")


def local(task: ScanTask) -> str:
    base = task.file_slice.base_file
    assert base is not None
    found = task.info.files.local_path(base.path)
    assert found is not None
    return found


def rewrite(task: ScanTask, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    path = Path(local(task))
    table = pq.read_table(path, partitioning=None, memory_map=False)
    path.unlink()
    pq.write_table(change(table), path, **options)


def with_column(name: str, values: Callable[[pa.Table], Any]) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.schema.get_field_index(name), name, values(table))


WIDER = with_column("qty", lambda table: table["qty"].cast(pa.int64()))


def test_a_file_as_hudi_writes_it_may_be_read(task: ScanTask) -> None:
    assert task.info.constants == {"part": "p0"}
    assert find_plain_file(task) == f"file://{local(task)}"


def test_a_file_of_which_only_some_commits_are_wanted_is_not(corpus: Callable[[str], Path]) -> None:
    tasks = HoodieTable.open(str(corpus("basic_cow_v9_part"))).incremental().tasks()
    assert len(tasks) > 1
    assert [find_plain_file(each) for each in tasks] == [None] * len(tasks)


def test_a_bootstrapped_file_is_not(corpus: Callable[[str], Path]) -> None:
    scan = HoodieTable.open(str(corpus("bootstrap_metadata_only_mor_v9"))).scan(query_type="read_optimized")
    found = {each.file_slice.base_instant: (find_plain_file(each), each) for each in scan.tasks()}
    skeleton, task = found.pop("00000000000001")
    assert skeleton is None
    assert len(pickle.dumps(task)) < 4096
    assert [path is not None for path, _ in found.values()] == [True]


@pytest.mark.parametrize(
    "change",
    [
        WIDER,
        lambda table: table.drop_columns(["price"]),
        lambda table: table.append_column("ID", table["id"]),
        with_column("part", lambda table: pa.array(["p9"] * len(table))),
        with_column("part", lambda table: pa.array(["p0", *[None] * (len(table) - 1)], pa.string())),
    ],
    ids=["another type", "a column short", "names alike", "another partition", "nulls"],
)
def test_a_file_that_differs_from_what_a_scan_gives_is_left_to_the_scan(task: ScanTask, change: Any) -> None:
    rewrite(task, change)
    assert find_plain_file(task) is None


def test_differences_in_columns_that_are_not_needed_do_not_count(task: ScanTask) -> None:
    rewrite(task, WIDER)
    assert find_plain_file(replace(task, columns=("id", "part"))) is not None


def test_without_statistics_a_partition_column_is_left_to_the_scan(task: ScanTask) -> None:
    rewrite(task, lambda table: table, write_statistics=False)
    assert find_plain_file(task) is None
    assert find_plain_file(replace(task, columns=("id",))) is not None


def test_log_files_and_strict_reads_are_left_to_the_scan(task: ScanTask, corpus: Callable[[str], Path]) -> None:
    assert find_plain_file(replace(task, options=replace(task.options, integrity="strict"))) is None
    merged = HoodieTable.open(str(corpus("filters_projections_mor_v9"))).scan().tasks()
    assert all(each.file_slice.log_files and find_plain_file(each) is None for each in merged)


def test_paths_with_wildcards_are_left_to_the_scan(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    where = tmp_path / "a[b]"
    shutil.copytree(corpus("basic_cow_v9_part"), where)
    assert [find_plain_file(each) for each in HoodieTable.open(str(where)).scan().tasks()] == [None, None]


def test_a_read_leaves_out_options_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[LoadOptions] = []

    def stop(options: LoadOptions) -> None:
        asked.append(options)
        raise RuntimeError("enough")

    monkeypatch.setattr(hybrid, "open_table", stop)
    with pytest.raises(RuntimeError, match="enough"):
        hybrid.load(None, {"path": "/t", "timezone": None, "batch_rows": None}, {}, None, None, ())
    assert (asked[0].timezone, asked[0].batch_rows) == (None, None)
