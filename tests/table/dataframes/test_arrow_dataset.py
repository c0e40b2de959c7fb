"""A scan as a dataset: columns, conditions and slices go down to the scan, and nothing reads below it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from hoodie_py import HoodieTable, UnsupportedFeatureError
from hoodie_py.table.dataframes.arrow_dataset import ScanDataset
from hoodie_py.table.dataframes.task_reads import narrow_task
from hoodie_py.table.scan.task import ScanTask

NAN = float("nan")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("price", pa.float64()), ("ts", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", partition_by="city")
    rows = [{"id": i, "city": "la" if i % 2 else "sf", "price": float(i), "ts": 1} for i in range(10)]
    table.upsert(rows)
    table.upsert([{**rows[4], "price": NAN, "ts": 2}])
    return table


@pytest.fixture
def empty(tmp_path: Path) -> HoodieTable:
    return HoodieTable.create(tmp_path / "e", SCHEMA, record_key="id", ordering="ts")


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def test_it_is_a_dataset_of_the_scan(table: HoodieTable) -> None:
    dataset = table.scan().to_pyarrow_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema == table.scan().schema
    assert ids(dataset.to_table()) == list(range(10))
    assert ids(dataset.to_table(columns=["id"], filter=pc.field("city") == "la")) == [1, 3, 5, 7, 9]
    assert dataset.count_rows(filter=pc.field("id") > 6) == 3
    assert dataset.head(2, columns=["id"]).num_rows == 2
    assert ids(dataset.filter(pc.field("id") > 6).filter(pc.field("city") == "la").to_table()) == [7, 9]
    assert dataset.to_table(columns={"twice": pc.field("id") * 2}).column_names == ["twice"]
    assert sum(batch.num_rows for batch in dataset.to_batches()) == 10


def test_fragments_are_the_slices_that_a_filter_leaves(table: HoodieTable) -> None:
    dataset = table.scan().to_pyarrow_dataset()
    assert len(list(dataset.get_fragments())) == 2
    condition = (pc.field("city") == "sf") & (pc.field("id") < 5)
    (fragment,) = dataset.get_fragments(filter=condition)
    assert ids(fragment.to_table(columns=["id"], filter=condition)) == [0, 2, 4]
    assert ids(fragment.to_table(filter=pc.field("id") < 2)) == [0]
    assert fragment.scanner(dataset.schema, columns=[]).count_rows() == 3


def test_a_limit_holds_for_all_fragments_together_and_before_filters(table: HoodieTable) -> None:
    dataset = table.scan(limit=3).to_pyarrow_dataset()
    (fragment,) = dataset.get_fragments(filter=pc.field("id") >= 0)
    assert fragment.to_table(filter=pc.field("id") >= 0).num_rows == 3
    assert dataset.to_table(filter=pc.field("id") >= 0).num_rows == 3
    assert dataset.count_rows(filter=pc.field("id") < 0) == 0


def test_a_table_without_rows_has_one_fragment(empty: HoodieTable) -> None:
    (fragment,) = empty.scan().to_pyarrow_dataset().get_fragments()
    assert fragment.to_table(columns=["id"]).num_rows == 0


def test_nan_is_what_the_engine_means(table: HoodieTable) -> None:
    condition = pc.field("price") > 7.5
    assert ids(ScanDataset(table.scan()).to_table(filter=condition)) == [8, 9]
    assert ids(ScanDataset(table.scan(), nan_is_greatest=True).to_table(filter=condition)) == [4, 8, 9]


def test_what_reads_files_is_refused(table: HoodieTable) -> None:
    dataset = table.scan().to_pyarrow_dataset()
    assert not hasattr(dataset, "files")
    with pytest.raises(UnsupportedFeatureError, match="they have no order"):
        dataset.take([0])
    refused: list[Any] = [
        lambda: dataset.sort_by("id"),
        lambda: dataset.join(dataset, "id").to_table(),
        lambda: ds.dataset([dataset]).to_table(),
        lambda: ds.Scanner.from_dataset(dataset).to_table(),
        lambda: dataset.replace_schema(dataset.schema).to_table(),
    ]
    for read in refused:
        with pytest.raises(UnsupportedFeatureError, match="as a set of files"):
            read()


def test_it_is_not_sent_to_other_processes(table: HoodieTable) -> None:
    with pytest.raises(UnsupportedFeatureError, match="to another process"):
        pickle.dumps(table.scan().to_pyarrow_dataset())


def test_a_slice_is_read_in_batches_that_fit_its_columns(tmp_path: Path) -> None:
    wide = pa.schema([("id", pa.int64()), *((f"c{number}", pa.int64()) for number in range(20))])
    table = HoodieTable.create(tmp_path / "w", wide, record_key="id")
    table.insert([dict.fromkeys(wide.names, 1)])
    whole, narrow = table.scan().options.batch_rows, table.scan(columns=["id"]).options.batch_rows
    assert whole < narrow
    (task,) = table.scan().tasks()
    assert narrow_task(task, ["id"]).options.batch_rows == narrow
    (task,) = table.scan(batch_rows=7).tasks()
    assert narrow_task(task, ["id"]).options.batch_rows == 7


def test_slices_of_one_query_fold_their_logs_in_turn(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    gates: list[Any] = []
    read = ScanTask.to_batches

    def note(task: ScanTask, gate: Any = None) -> Any:
        gates.append(gate)
        return read(task, gate)

    monkeypatch.setattr(ScanTask, "to_batches", note)
    dataset = table.scan().to_pyarrow_dataset()
    for _ in range(2):
        rows = [fragment.to_table(columns=["id"]).num_rows for fragment in dataset.get_fragments()]
        assert rows == [5, 5]
    first, second, other, last = gates
    assert first is second is not other is last
    assert first is not None
