"""Inserts of streams, piece by piece, make what the same rows make in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.pipeline import local_engine
from hoodie_py.writer.pipeline.local_engine import _SpilledRows
from tests.writer.compaction_tables import QUICK

_SCHEMA = pa.schema([
    ("id", pa.string()), ("n", pa.int64()), ("part", pa.string()), ("tags", pa.list_(pa.string())),
])  # fmt: skip
_FILES = {"hoodie.parquet.max.file.size": str(1 << 14)}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "_PIECE_BYTES", 20_000)


def _rows(count: int = 3_000) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            "n": list(numbers),
            "part": [f"p{number * number % 7 % 3}" for number in numbers],
            "tags": [["a"] * (number % 3) for number in numbers],
        },
        schema=_SCHEMA,
    )


def _stream(rows: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches(max_chunksize=100)))


def _create(path: Path, **more: Any) -> HoodieTable:
    return HoodieTable.create(path, _SCHEMA, record_key="id", partition_by="part", table_type="COPY_ON_WRITE", **more)


def _files(path: Path) -> list[tuple[str, pa.Table]]:
    """Return partition and rows of each base file, without the columns that differ from write to write."""
    found = []
    for each in path.rglob("*-0_*.parquet"):
        rows = pq.read_table(each, partitioning=None).select(["_hoodie_record_key", *_SCHEMA.names])
        found.append((each.parent.name, rows))
    return sorted(found, key=lambda each: (each[0], each[1].column("n")[0].as_py()))


@pytest.mark.parametrize("operation", ["bulk_insert", "insert"])
def test_the_files_are_those_of_the_rows_in_memory(
    tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled = []
    plain = _SpilledRows.add
    monkeypatch.setattr(_SpilledRows, "add", lambda self, records: spilled.append(1) or plain(self, records))
    rows = _rows()
    for name, data in (("held", rows), ("streamed", _stream(rows))):
        result = getattr(_create(tmp_path / name), operation)(data, {**QUICK, **_FILES})
        assert result.rows_inserted == rows.num_rows
        assert len(spilled) == (0 if name == "held" else len(spilled))
    assert len(spilled) > 2
    assert len(_files(tmp_path / "held")) > 3
    assert _files(tmp_path / "streamed") == _files(tmp_path / "held")


def test_a_short_stream_is_not_spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_SpilledRows, "add", lambda *_: pytest.fail("spilled"))
    assert _create(tmp_path / "t").bulk_insert(_stream(_rows(50)), QUICK).rows_inserted == 50
    assert _create(tmp_path / "empty").bulk_insert(_stream(_rows(0)), QUICK).rows_inserted == 0


def test_rows_marked_as_deletes_are_dropped(tmp_path: Path) -> None:
    table = _create(tmp_path / "t")
    rows = _rows()
    marked = rows.append_column("_hoodie_operation", pa.array(["D" if n % 5 == 0 else "I" for n in range(len(rows))]))
    assert table.insert(_stream(marked), QUICK).rows_inserted == 2_400
    assert sorted(table.scan(columns=["n"]).to_arrow().column(0).to_pylist()) == [n for n in range(3_000) if n % 5]


def test_errors_name_the_rows_of_the_stream(tmp_path: Path) -> None:
    rows = _rows()
    keys = [None if number == 2_500 else key for number, key in enumerate(rows.column("id").to_pylist())]
    table = _create(tmp_path / "t")
    with pytest.raises(InvalidQueryError) as caught:
        table.bulk_insert(_stream(rows.set_column(0, "id", pa.array(keys))), QUICK)
    assert caught.value.where["rows"] == [2_500]
    assert table.refresh().timeline.last is None


def test_a_stream_that_breaks_leaves_no_trace(tmp_path: Path) -> None:
    def breaks() -> Iterator[pa.RecordBatch]:
        yield from _rows().to_batches(max_chunksize=500)
        raise RuntimeError("the source broke")

    table = _create(tmp_path / "t")
    with pytest.raises(RuntimeError, match="the source broke"):
        table.bulk_insert(pa.RecordBatchReader.from_batches(_SCHEMA, breaks()), QUICK)
    assert table.refresh().timeline.last is None


def test_sorted_and_combined_inserts_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_SpilledRows, "add", lambda *_: pytest.fail("spilled"))
    for name, option in (("s", "hoodie.bulkinsert.sort.mode"), ("c", "hoodie.combine.before.insert")):
        options = {**QUICK, option: "GLOBAL_SORT" if name == "s" else "true"}
        assert _create(tmp_path / name).bulk_insert(_stream(_rows()), options).rows_inserted == 3_000
