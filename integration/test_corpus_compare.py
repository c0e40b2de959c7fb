"""The comparison that the corpus tests rest on sees what it must see, and no more."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from integration.corpus_compare import differences

UTC = datetime.UTC
KINDS = {
    "text": pa.string(),
    "number": pa.float64(),
    "amount": pa.decimal128(10, 2),
    "at": pa.timestamp("us", "UTC"),
    "items": pa.list_(pa.struct([("x", pa.int32()), ("y", pa.timestamp("us"))])),
    "named": pa.map_(pa.string(), pa.float64()),
}
ROWS = [
    {
        "text": "a",
        "number": float("nan"),
        "amount": Decimal("1.10"),
        "at": datetime.datetime(2026, 1, 2, tzinfo=UTC),
        "items": [{"x": 1, "y": datetime.datetime(1969, 1, 1)}, None],
        "named": [("p", 1.0), ("q", float("nan"))],
    },
    {"text": None, "number": 0.0, "amount": None, "at": None, "items": [], "named": []},
]
TABLE = pa.Table.from_pylist(ROWS, pa.schema(KINDS.items()))


def changed(row: int, **values: object) -> pa.Table:
    rows = [dict(r) for r in ROWS]
    rows[row].update(values)
    return pa.Table.from_pylist(rows, TABLE.schema)


def test_row_order_and_map_order_do_not_count() -> None:
    assert differences(TABLE.take([1, 0]), TABLE) == []
    assert differences(changed(0, named=[("q", float("nan")), ("p", 1.0)]), TABLE) == []


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("text", pa.large_string()),
        ("text", pa.string_view()),
        ("text", pa.dictionary(pa.int32(), pa.string())),
        ("at", pa.timestamp("ns", "UTC")),
        ("items", pa.large_list(pa.field("element", KINDS["items"].value_type))),
    ],
)
def test_physical_types_do_not_count(column: str, kind: pa.DataType) -> None:
    index = TABLE.column_names.index(column)
    assert differences(TABLE.set_column(index, column, TABLE[column].cast(kind)), TABLE) == []


@pytest.mark.parametrize(
    "other",
    [
        changed(0, text="b"),
        changed(0, number=0.0),
        changed(1, number=-0.0),
        changed(0, amount=Decimal("1.11")),
        changed(0, at=datetime.datetime(2026, 1, 2, 0, 0, 0, 1, tzinfo=UTC)),
        changed(0, items=[None, {"x": 1, "y": datetime.datetime(1969, 1, 1)}]),
        changed(0, named=[("p", 1.0)]),
        changed(1, items=None),
        TABLE.slice(0, 1),
        pa.concat_tables([TABLE, TABLE.slice(0, 1)]),
        TABLE.select(list(reversed(TABLE.column_names))),
        TABLE.drop_columns("text"),
        TABLE.set_column(1, "number", TABLE["number"].cast(pa.float32())),
        TABLE.set_column(2, "amount", TABLE["amount"].cast(pa.decimal128(11, 2))),
        TABLE.set_column(3, "at", TABLE["at"].cast(pa.timestamp("us"))),
    ],
)
def test_a_difference_is_seen(other: pa.Table) -> None:
    assert differences(other, TABLE) != []
