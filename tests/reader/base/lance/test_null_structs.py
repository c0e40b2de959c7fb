"""A struct without a field that the table requires was null."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py.reader.base.lance.lance_file import restore_array
from tests.reader.base.lance.test_lance_file import open_file, write

REFERENCE = pa.struct([pa.field("path", pa.string(), nullable=False), pa.field("offset", pa.int64())])
BLOB = pa.struct(
    [pa.field("type", pa.string(), nullable=False), pa.field("data", pa.binary()), ("reference", REFERENCE)]
)
NOTHING = {"path": None, "offset": None}
ROWS = [
    {"type": "INLINE", "data": b"abc", "reference": NOTHING},
    {"type": "OUT_OF_LINE", "data": None, "reference": {"path": "/x", "offset": None}},
    {"type": None, "data": None, "reference": NOTHING},
]
WANT = [{**ROWS[0], "reference": None}, ROWS[1], None]


def as_stored(type_: pa.DataType) -> pa.DataType:
    """The type with nullable fields, as Hudi's writer makes it for Lance."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, as_stored(field.type)) for field in type_])
    return pa.list_(as_stored(type_.value_type)) if pa.types.is_list(type_) else type_


def test_structs_and_lists_of_structs() -> None:
    stored = pa.array([ROWS[0], *ROWS], as_stored(BLOB)).slice(1)
    assert restore_array(stored, BLOB).to_pylist() == WANT
    lists = pa.array([[ROWS[0]], None, ROWS, []], pa.list_(as_stored(BLOB))).slice(1)
    assert restore_array(lists, pa.list_(BLOB)).to_pylist() == [None, WANT, []]


def test_structs_without_required_fields_stay_as_they_are() -> None:
    free = pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string()})})
    array = pa.array([{"a": None, "b": {"c": None}}, None], free)
    assert restore_array(array, free).to_pylist() == array.to_pylist()
    assert restore_array(array, pa.string()) is array


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_files_of_both_formats(tmp_path: Path, version: str) -> None:
    rows = ROWS if version == "2.0" else WANT
    base = write(tmp_path, pa.table({"b": pa.array(rows, as_stored(BLOB)), "n": range(3)}), version)
    schema = pa.schema({"n": pa.int64(), "b": BLOB})
    (batch,) = open_file(tmp_path, base).read_batches(schema, 10)
    assert batch.column("b").to_pylist() == WANT
