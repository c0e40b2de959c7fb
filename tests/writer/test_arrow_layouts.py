"""Every layout of Arrow through every verb that takes rows, keys or values: as the same rows in plain layouts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.writer.dml.clauses import Insert, Update
from hoodie_py.writer.input.input_data import read_input
from tests.arrow.array_layouts import TEXTS, make_plain_rows, make_rows

_OLD, _NEW = [f"k{at}" for at in range(5)], [f"k{at}" for at in range(3, 8)]
_KEY_LAYOUTS = [pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
_SHAPES: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda rows: rows,
    "batch": lambda rows: rows.combine_chunks().to_batches()[0],
    "stream": lambda rows: rows.to_reader(max_chunksize=2),
    "chunks": lambda rows: pa.concat_tables([rows.slice(0, 1), rows.slice(1, 1), rows.slice(2)]),
    "slice": lambda rows: pa.concat_tables([rows.slice(4), rows]).slice(1),
    "no chunks": lambda rows: pa.table([pa.chunked_array([], each) for each in rows.schema.types], schema=rows.schema),
}
_VERBS = ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]


def _create(path: Path, rows: pa.Table, **more: Any) -> HoodieTable:
    return HoodieTable.create(path, rows.schema, record_key="id", ordering="ts", **more)


def _read(table: HoodieTable) -> dict[str, dict[str, Any]]:
    rows = table.scan().to_arrow()
    return {row["id"]: row for row in rows.select(rows.column_names[5:]).to_pylist()}


@pytest.mark.parametrize("shape", _SHAPES)
def test_input_has_plain_layouts_in_all_shapes(shape: str) -> None:
    made = read_input(_SHAPES[shape](make_rows(_OLD))).read_all()
    plain = _SHAPES[shape](make_plain_rows(_OLD))
    wanted = plain.read_all() if shape == "stream" else pa.Table.from_batches([plain]) if shape == "batch" else plain
    assert made.schema.equals(wanted.schema)
    assert made.to_pylist() == wanted.to_pylist()


def test_a_new_table_has_the_plain_types(tmp_path: Path) -> None:
    ours, wanted = _create(tmp_path / "a", make_rows(_OLD)), _create(tmp_path / "b", make_plain_rows(_OLD))
    assert ours.schema == wanted.schema


@pytest.mark.parametrize("verb", _VERBS)
def test_rows_of_all_layouts_are_written(tmp_path: Path, verb: str) -> None:
    tables = []
    for name, make in (("ours", make_rows), ("wanted", make_plain_rows)):
        table = _create(tmp_path / name, make(_OLD), table_type="COPY_ON_WRITE")
        table.upsert(make(_OLD))
        result = getattr(table, verb)(make(_NEW if verb == "upsert" else [f"n{at}" for at in range(5)]))
        assert result.schema_changes == ()
        tables.append(_read(table))
    assert tables[0] == tables[1]


def test_columns_of_all_layouts_are_added(tmp_path: Path) -> None:
    tables = []
    for name, make in (("ours", make_rows), ("wanted", make_plain_rows)):
        table = _create(tmp_path / name, make(_OLD).select(["id", "ts"]))
        table.upsert(make(_OLD))
        tables.append((table.schema, _read(table)))
    assert tables[0] == tables[1]


@pytest.mark.parametrize("layout", _KEY_LAYOUTS, ids=str)
def test_keys_of_all_layouts_are_deleted(tmp_path: Path, layout: pa.DataType) -> None:
    table = _create(tmp_path / "t", make_plain_rows(_OLD))
    table.upsert(make_plain_rows(_OLD))
    table.delete(pa.array(["k0"]).cast(layout))
    table.delete(pa.chunked_array([pa.array(["k1"]).cast(layout), pa.array([], layout)]))
    table.delete(pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["k2"])))
    table.delete(pa.table({"id": pa.array(["k3"]).cast(layout)}))
    assert set(_read(table)) == {"k4"}


@pytest.mark.parametrize("layout", _KEY_LAYOUTS, ids=str)
def test_sources_of_merges_have_all_layouts(tmp_path: Path, layout: pa.DataType) -> None:
    tables = []
    for name, make in (("ours", lambda keys: make_rows(keys, layout)), ("wanted", make_plain_rows)):
        table = _create(tmp_path / name, make(_OLD))
        table.upsert(make(_OLD))
        news = make(_NEW)
        table.merge(news, on="id", when_matched="update", when_not_matched="insert")
        clause = Update({"string_view": "source.string_view"}, where="source.runs = 'a' and source.large_string <> 'x'")
        table.merge(news, on="target.id = source.id", when_matched=clause, when_not_matched=Insert())
        tables.append(_read(table))
    assert tables[0] == tables[1]


def test_frames_of_polars_are_merged(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="NOT TESTED: polars is not installed")
    table = HoodieTable.create(
        tmp_path / "t", pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())]), record_key="id"
    )
    table.upsert([{"id": "a", "city": "sf", "n": 1}])
    news = polars.DataFrame({"id": ["a", "b"], "city": ["la", None], "n": [2, 3]})
    table.merge(news, on="id", when_matched="update", when_not_matched="insert")
    table.upsert(news.with_columns(polars.col("city").cast(polars.Categorical)))
    rows = {key: (row["city"], row["n"]) for key, row in _read(table).items()}
    assert rows == {"a": ("la", 2), "b": (None, 3)}


def test_values_that_are_set_have_all_layouts(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", make_plain_rows(_OLD))
    table.upsert(make_plain_rows(_OLD))
    table.update({"string": pa.scalar("v", pa.string_view()), "runs": pa.scalar("w", pa.large_string())}, "id = 'k0'")
    assert [_read(table)["k0"][name] for name in ("string", "runs")] == ["v", "w"]


class _GivesLayouts(RecordMerger):
    """Takes the newer record, with columns in the layouts of ``made``."""

    strategy_id = "7b6c0d2e-0000-4000-8000-00000000a47a"
    layout: pa.DataType = pa.string()

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer

    def merge_batch(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        texts = pa.array([f"m{each}" for each in newer.keys.to_pylist()])
        mask = pa.chunked_array([pa.array([True] * len(newer))])
        return newer.where(mask, older).with_columns(
            string_view=texts.cast(self.layout), struct=newer.column("struct").cast(_LARGE_STRUCT)
        )


_LARGE_STRUCT = pa.struct([("x", pa.large_string()), ("y", pa.large_list(pa.large_string()))])


@pytest.mark.parametrize("layout", _KEY_LAYOUTS, ids=str)
def test_mergers_may_return_all_layouts(tmp_path: Path, layout: pa.DataType) -> None:
    merger = type("Gives", (_GivesLayouts,), {"layout": layout})
    table = _create(
        tmp_path / "t",
        make_rows(_OLD),
        merger=merger,
    )
    for _ in range(2):
        table.upsert(make_rows(_OLD), merger=merger)
    found = {row["id"]: row for row in table.scan(merger=merger).to_arrow().to_pylist()}
    assert [row["string_view"] for row in found.values()] == [f"m{key}" for key in found]
    plain = {row["id"]: row["struct"] for row in make_plain_rows(_OLD).to_pylist()}
    assert {key: row["struct"] for key, row in found.items()} == plain


@pytest.mark.parametrize("type_", [pa.string(), *_KEY_LAYOUTS], ids=str)
def test_filters_take_values_of_all_layouts(tmp_path: Path, type_: pa.DataType) -> None:
    table = _create(tmp_path / "t", make_plain_rows(_OLD))
    table.upsert(make_plain_rows(_OLD))
    values = pa.array([TEXTS[0], "none"]).cast(type_)
    for expression in (pc.field("string") == values[0], pc.field("string").isin(values)):
        assert table.scan(["id"], expression).to_arrow()["id"].to_pylist() == ["k0"]
        assert table.delete(expression).rows_deleted == 1
        table.upsert(make_plain_rows(_OLD))


def test_answers_have_plain_layouts(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", make_rows(_OLD))
    table.upsert(make_rows(_OLD))
    scan = table.scan()
    for found in (
        scan.to_arrow().schema,
        pa.RecordBatchReader.from_stream(scan).schema,
        next(scan.to_batches()).schema,
    ):
        assert [field.type for field in found][5:] == make_plain_rows(_OLD).schema.types
