"""Columns of few values: read as codes, they hold what they hold when read plainly."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.reader.base.dictionaries import Decoder, find_coded_columns, to_plain_array, to_plain_type

COUNTRIES = st.sampled_from([None, "", "Österreich", "Česko", "a fairly long name of some place or other"])
NAMES = st.sampled_from(["", "x", "a key that is longer than the others"])
SCHEMA = pa.schema(
    [
        ("flat", pa.string()),
        ("list", pa.list_(pa.string())),
        ("lists", pa.list_(pa.list_(pa.string()))),
        ("map", pa.map_(pa.string(), pa.string())),
        ("struct", pa.struct([("n", pa.int32()), ("text", pa.string()), ("texts", pa.list_(pa.string()))])),
        ("structs", pa.list_(pa.struct([("text", pa.string())]))),
        ("number", pa.int64()),
    ]
)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


ROWS = st.fixed_dictionaries(
    {
        "flat": COUNTRIES,
        "list": maybe(st.lists(COUNTRIES, max_size=3)),
        "lists": maybe(st.lists(maybe(st.lists(COUNTRIES, max_size=2)), max_size=2)),
        "map": maybe(st.lists(st.tuples(NAMES, COUNTRIES), max_size=3)),
        "struct": maybe(
            st.fixed_dictionaries({"n": st.none(), "text": COUNTRIES, "texts": maybe(st.lists(COUNTRIES, max_size=2))})
        ),
        "structs": maybe(st.lists(maybe(st.fixed_dictionaries({"text": COUNTRIES})), max_size=2)),
        "number": st.integers(0, 5),
    }
)


def written(table: pa.Table, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file


def read_coded(file: io.BytesIO, columns: Sequence[int], rows: int) -> list[pa.RecordBatch]:
    return list(pq.ParquetFile(file, read_dictionary=list(columns)).iter_batches(rows))


@given(st.lists(ROWS, min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 3))
def test_every_shape_is_written_out_as_it_was(rows: list[dict[str, Any]], at_once: int, skipped: int) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    batches = read_coded(written(table), range(10), at_once)
    assert pa.types.is_dictionary(batches[0].schema.field("flat").type)
    found = []
    for batch in batches:
        part = batch.slice(skipped)
        columns = []
        for column, field in zip(part.columns, SCHEMA, strict=True):
            assert to_plain_type(column.type).equals(field.type)
            columns.append(to_plain_array(column, field.type))
            columns[-1].validate(full=True)
        found += pa.RecordBatch.from_arrays(columns, schema=SCHEMA).to_pylist()
    expected = table.to_pylist()
    kept = [row for start in range(0, len(rows), at_once) for row in expected[start : start + at_once][skipped:]]
    assert found == kept


def test_strings_that_repeat_are_chosen_and_no_others() -> None:
    table = pa.table(
        {
            "city": ["Wien", "Graz", "Linz", None] * 500,
            "id": [f"id-{i}" for i in range(2000)],
            "n": [1, 2] * 1000,
            "tags": [["a", "b"], []] * 1000,
        }
    )
    assert find_coded_columns(pq.read_metadata(written(table))) == [0, 3]
    assert find_coded_columns(pq.read_metadata(written(table, use_dictionary=False))) == []
    assert find_coded_columns(pq.read_metadata(written(table.slice(0, 0)))) == []


@pytest.mark.parametrize("last", [["Wien"] * 1000, [f"{i}" * 9 for i in range(1000)]], ids=["alike", "another"])
def test_row_groups_of_other_kinds(last: list[str]) -> None:
    cities = ["Wien"] * 1000 + [f"{i}" * 9 for i in range(1000)] + last
    file = written(pa.table({"city": cities}), row_group_size=1000)
    assert find_coded_columns(pq.read_metadata(file)) == ([0] if last[0] == "Wien" else [])
    batches = read_coded(file, [0], 300)
    assert [text for batch in batches for text in to_plain_array(batch.column(0), pa.string()).to_pylist()] == cities


def test_a_column_of_one_value_is_shared() -> None:
    decoder, field = Decoder(), pa.field("p", pa.string())
    one = pa.array(["x"] * 5).dictionary_encode()
    first, second = decoder.decode(field, one), decoder.decode(field, one.slice(1, 3))
    assert first.to_pylist() == ["x"] * 5
    assert second.to_pylist() == ["x"] * 3
    assert first.buffers()[2].address == second.buffers()[2].address
    assert decoder.decode(field, pa.array(["x", None, "x"]).dictionary_encode()).to_pylist() == ["x", None, "x"]
    assert decoder.decode(field, pa.array(["y"]).dictionary_encode()).to_pylist() == ["y"]
