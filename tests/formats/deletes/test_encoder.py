from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.deletes.decoder import decode_deletes
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.deletes.ordering_value import OrderingKind
from tests.formats.log_writer import deletes
from tests.formats.real_logs import real_blocks

COLUMNS: list[tuple[pa.Array, OrderingKind, list[Any]]] = [
    (pa.array([True, None, False]), OrderingKind.BOOLEAN, [True, None, False]),
    (pa.array([1, None, -7], pa.int32()), OrderingKind.INT, [1, None, -7]),
    (pa.array([1, None, -7], pa.int16()), OrderingKind.INT, [1, None, -7]),
    (pa.array([1 << 60, None, 0]), OrderingKind.LONG, [1 << 60, None, 0]),
    (pa.array([0.5, None, -1], pa.float32()), OrderingKind.FLOAT, [0.5, None, -1.0]),
    (pa.array([0.5, None, -1.0]), OrderingKind.DOUBLE, [0.5, None, -1.0]),
    (pa.array(["é", None, ""]), OrderingKind.STRING, ["é", None, ""]),
    (pa.array(["é", None, ""], pa.large_string()), OrderingKind.STRING, ["é", None, ""]),
    (pa.array([b"\0", None, b""]), OrderingKind.BYTES, [b"\0", None, b""]),
    (pa.array([date(1970, 1, 3), None, date(1969, 12, 31)]), OrderingKind.INT, [2, None, -1]),
    (pa.array([datetime(1970, 1, 1, 0, 0, 1, 5, UTC), None, None], pa.timestamp("us", "UTC")), OrderingKind.LONG,
     [1_000_005, None, None]),
    (pa.array([datetime(1970, 1, 1, 0, 0, 1), None, None], pa.timestamp("ms")), OrderingKind.LONG,
     [1_000_000, None, None]),
    (pa.array([Decimal("-1.25"), None, Decimal("99999999.99")]), OrderingKind.DECIMAL,
     [Decimal("-1.25"), None, Decimal("99999999.99")]),
]  # fmt: skip
KEYS, PARTITIONS = pa.array(["a", "é", "c" * 200]), pa.array(["p", None, ""])


def records(*orderings: Any) -> list[tuple[str, str | None, Any]]:
    return list(zip(KEYS.to_pylist(), PARTITIONS.to_pylist(), orderings, strict=True))


@pytest.mark.parametrize(("column", "kind", "values"), COLUMNS)
def test_ordering_values_have_the_types_of_hudi(column: pa.Array, kind: OrderingKind, values: list[Any]) -> None:
    content = encode_delete_content(KEYS, PARTITIONS, [column])
    none = (OrderingKind.INT, 0)
    assert content == deletes(records(*(none if value is None else (kind, value) for value in values)))
    found = decode_deletes(content)
    assert (found.keys.to_pylist(), found.values) == (KEYS.to_pylist(), values)


def test_several_ordering_fields_make_an_array() -> None:
    content = encode_delete_content(KEYS, PARTITIONS, [pa.array([1, 0, None], pa.int32()), pa.array(["x", None, "z"])])
    none = (OrderingKind.INT, 0)
    pairs: list[list[Any]] = [
        [(OrderingKind.INT, 1), (OrderingKind.STRING, "x")], [(OrderingKind.INT, 0), none],
        [none, (OrderingKind.STRING, "z")],
    ]  # fmt: skip
    assert content == deletes(records(*((OrderingKind.ARRAY, pair) for pair in pairs)))
    dates = encode_delete_content(KEYS[:1], PARTITIONS[:1], [pa.array([date(1970, 1, 2)]), pa.array([5])])
    assert decode_deletes(dates).values == [((OrderingKind.INT, 1), (OrderingKind.LONG, 5))]


def test_without_ordering_fields_the_delete_counts_by_its_arrival() -> None:
    zero = (OrderingKind.INT, 0)
    assert encode_delete_content(KEYS, PARTITIONS) == deletes(records(zero, zero, zero))
    columns = [pa.array([None, 7, None], pa.int64()), pa.array([None, None, None], pa.string())]
    some = (OrderingKind.ARRAY, [(OrderingKind.LONG, 7), zero])
    assert encode_delete_content(KEYS, PARTITIONS, columns) == deletes(records(zero, some, zero))
    assert encode_delete_content(KEYS[:0], PARTITIONS[:0]) == deletes([])


@given(
    st.lists(st.tuples(st.text(max_size=9), st.text(max_size=3), st.none() | st.integers(-(1 << 63), (1 << 63) - 1)))
)
def test_deletes_read_back(rows: list[tuple[str, str, int | None]]) -> None:
    keys, paths, values = ([row[i] for row in rows] for i in range(3))
    ordering = pa.array(values, pa.int64())
    content = encode_delete_content(pa.array(keys, pa.string()), pa.array(paths, pa.string()), [ordering])
    found = decode_deletes(content)
    assert (found.keys.to_pylist(), found.values) == (keys, values)


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(InvalidTableError, match="key"):
        encode_delete_content(pa.array(["a", None, "b"]), PARTITIONS)
    with pytest.raises(InvalidTableError, match="number"):
        encode_delete_content(KEYS, PARTITIONS[:2])
    with pytest.raises(UnsupportedFeatureError, match="list"):
        encode_delete_content(KEYS, PARTITIONS, [pa.array([[1], [2], [3]])])
    with pytest.raises(UnsupportedFeatureError, match="decimal"):
        encode_delete_content(KEYS, PARTITIONS, [pa.array([Decimal("1e-20")] * 3, pa.decimal128(38, 20))])


def test_values_of_java_blocks_survive() -> None:
    checked = 0
    types = {OrderingKind.LONG: pa.int64(), OrderingKind.STRING: pa.string(), OrderingKind.DOUBLE: pa.float64()}
    for block in real_blocks():
        if block.type.name != "DELETE":
            continue
        found = decode_deletes(block.content)
        kind = OrderingKind(int(found.kinds[0])) if len(found) else OrderingKind.NONE
        if kind in types and (found.kinds == kind).all():
            again = decode_deletes(encode_delete_content(found.keys, found.keys, [pa.array(found.values, types[kind])]))
            assert (again.keys, again.values) == (found.keys, found.values)
            checked += 1
    assert checked > 3
