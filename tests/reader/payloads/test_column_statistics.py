"""Column statistics of the metadata table merge as Hudi's do, with Java's order of values."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.reader.payloads.column_statistics import merge_statistics

MEMBERS = {
    "member0": pa.bool_(), "member1": pa.int32(), "member2": pa.int64(), "member3": pa.float32(),
    "member4": pa.float64(), "member5": pa.binary(), "member6": pa.string(), "member7": pa.date32(),
    "member10": pa.timestamp("us", "UTC"),
}  # fmt: skip
WRAPPED = pa.struct([pa.field(name, pa.struct([("value", type_)])) for name, type_ in MEMBERS.items()])
STATISTICS = pa.struct(
    [
        ("fileName", pa.string()),
        ("columnName", pa.string()),
        ("minValue", WRAPPED),
        ("maxValue", WRAPPED),
        ("valueCount", pa.int64()),
        ("nullCount", pa.int64()),
        ("totalSize", pa.int64()),
        ("totalUncompressedSize", pa.int64()),
        ("isDeleted", pa.bool_()),
        ("isTightBound", pa.bool_()),
        ("valueType", pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())])),
    ]
)
DECIMAL, UUID = 10, 11


def statistics(
    least: Any, greatest: Any, member: str = "member2", kind: int | None = None, **more: Any
) -> dict[str, Any]:
    def wrap(value: Any) -> Any:
        return None if value is None else {**dict.fromkeys(MEMBERS), member: {"value": value}}

    plain = {"fileName": "f", "columnName": "c", "valueCount": 3, "nullCount": 1, "totalSize": 10}
    plain |= {"totalUncompressedSize": 20, "isDeleted": False, "isTightBound": False}
    value_type = None if kind is None else {"typeOrdinal": kind, "additionalInfo": None}
    return {**plain, "minValue": wrap(least), "maxValue": wrap(greatest), "valueType": value_type, **more}


def merge(older: dict[str, Any] | None, newer: dict[str, Any] | None) -> Any:
    arrays = (pa.array([None, each, each], STATISTICS)[1:] for each in (older, newer))
    merged = merge_statistics(*arrays)
    merged.validate(full=True)
    assert merged.type == STATISTICS
    rows = merged.to_pylist()
    return rows[0]


def bounds(row: dict[str, Any], member: str) -> tuple[Any, Any]:
    found = [row[name] and row[name][member]["value"] for name in ("minValue", "maxValue")]
    return found[0], found[1]


def test_values_widen_and_counts_add_up() -> None:
    older = statistics(1, 9, fileName="old")
    newer = statistics(3, 12, fileName="new", valueCount=5)
    assert merge(older, newer) == statistics(
        1, 12, fileName="new", valueCount=8, nullCount=2, totalSize=20, totalUncompressedSize=40
    )


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (statistics(1, 9, isDeleted=True), statistics(3, 4)),
        (statistics(1, 9), statistics(3, 4, isDeleted=True)),
        (statistics(1, 9), statistics(3, 4, isTightBound=True)),
        (None, statistics(3, 4)),
        (statistics(3, 4), None),
    ],
)
def test_the_newer_ones_count_alone(older: Any, newer: Any) -> None:
    assert merge(older, newer) == newer


def test_a_side_without_values_takes_the_others() -> None:
    assert bounds(merge(statistics(None, None), statistics(3, 4)), "member2") == (3, 4)
    assert bounds(merge(statistics(3, 4), statistics(None, None)), "member2") == (3, 4)
    assert merge(statistics(None, None), statistics(None, None))["minValue"] is None


def java_text(value: str) -> bytes:
    return value.encode("utf-16-be")


def java_double(value: float) -> Any:
    return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))


def java_bytes(value: bytes) -> list[int]:
    return [octet - 256 if octet > 127 else octet for octet in value]


KINDS: list[tuple[str, int | None, st.SearchStrategy[Any], Callable[[Any], Any]]] = [
    ("member0", None, st.booleans(), bool),
    ("member1", 3, st.integers(-9, 9), int),
    ("member2", None, st.integers(-(1 << 63), (1 << 63) - 1), int),
    ("member4", 6, st.sampled_from([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan]), java_double),
    ("member3", 5, st.sampled_from([0.0, -0.0, 1.5, math.inf, math.nan]), java_double),
    ("member5", None, st.binary(max_size=3), java_bytes),
    ("member5", 8, st.binary(max_size=3), java_bytes),
    ("member5", DECIMAL, st.integers(-(1 << 70), 1 << 70).map(
        lambda n: n.to_bytes(n.bit_length() // 8 + 1, "big", signed=True)),
        lambda octets: int.from_bytes(octets, "big", signed=True)),
    ("member6", None, st.text(max_size=3) | st.sampled_from(["\ud7ff", "\U00010000", "\uffff"]), java_text),
    ("member6", UUID, st.uuids().map(str), lambda text: (
        int.from_bytes(uuid.UUID(text).bytes[:8], "big", signed=True),
        int.from_bytes(uuid.UUID(text).bytes[8:], "big", signed=True))),
]  # fmt: skip


@pytest.mark.parametrize(("member", "kind", "values", "order"), KINDS)
@given(data=st.data())
def test_values_compare_as_in_java(
    member: str, kind: int | None, values: st.SearchStrategy[Any], order: Callable[[Any], Any], data: st.DataObject
) -> None:
    least, other, greatest, last = (data.draw(values) for _ in range(4))
    merged = bounds(merge(statistics(least, greatest, member, kind), statistics(other, last, member, kind)), member)
    assert order(merged[0]) == min(order(least), order(other))
    assert order(merged[1]) == max(order(greatest), order(last))


def test_values_of_different_types_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="different value types"):
        merge(statistics(1, 2, "member1"), statistics(1, 2, "member2"))
    with pytest.raises(UnsupportedFeatureError, match="different value types"):
        merge(statistics(1, 2, kind=4), statistics(1, 2, kind=16))
    with pytest.raises(UnsupportedFeatureError, match="UUID"):
        merge(statistics("x", "x", "member6", UUID), statistics("y", "y", "member6", UUID))
