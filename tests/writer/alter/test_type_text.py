"""Names of types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.alter.type_text import make_fields, parse_type


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("INT", pa.int32()),
        ("bigint", pa.int64()),
        (" decimal(10, 2) ", pa.decimal128(10, 2)),
        ("decimal(5)", pa.decimal128(5, 0)),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("array<array<string>>", pa.list_(pa.list_(pa.string()))),
        ("map<string, double>", pa.map_(pa.string(), pa.float64())),
        ("struct<a: int, b string, c:struct<d:date>>", pa.struct([
            ("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.date32())])),
        ])),
    ],
)  # fmt: skip
def test_types(text: str, type_: pa.DataType) -> None:
    assert parse_type(text) == type_


@pytest.mark.parametrize(
    "text",
    ["", "thing", "int int", "decimal", "decimal(0)", "decimal(39, 1)", "decimal(5, 6)", "decimal(x)", "array<int",
     "array<>", "map<int>", "struct<>", "struct<a>", "int>", "é", "array<" * 100 + "int" + ">" * 100, "x" * 200_000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_texts_that_are_none(text: str) -> None:
    with pytest.raises(InvalidQueryError, match="type"):
        parse_type(text)


def test_new_columns() -> None:
    assert make_fields(None) == {}
    assert make_fields({"a": "int"}) == {"a": pa.field("a", pa.int32())}
    assert make_fields(pa.schema([("a", pa.int32())])) == {"a": pa.field("a", pa.int32())}
    with pytest.raises(InvalidQueryError, match="one name"):
        make_fields([pa.field("a", pa.int32()), pa.field("a", pa.int64())])
