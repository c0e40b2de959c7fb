"""Widest ranges hold for all values, in the order in which Spark compares texts: by their bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.indexes.bounds import V1, V2, ValueKind, ValueType
from hoodie_py.formats.indexes.ranges import make_avro_key, make_statistics, make_widest_range

T = ValueType


@pytest.mark.parametrize("version", [V1, V2])
def test_they_can_be_written(version: int) -> None:
    made = [make_widest_range("c", ValueKind(kind, 12, 2)) for kind in ValueType]
    ranges = [each for each in made if each is not None]
    assert {each.kind.type for each in ranges} >= {T.INT, T.STRING, T.DOUBLE, T.DECIMAL, T.DATE, T.TIMESTAMP_MICROS}
    assert len(make_statistics(["f"] * len(ranges), ranges, version)) == len(ranges)
    assert all((each.nulls, each.values) == (1, 2) for each in ranges)


def test_bytes_have_none() -> None:
    assert make_widest_range("c", ValueKind(T.BYTES)) is None
    assert make_widest_range("c", ValueKind(T.UUID)) is None


@given(st.floats(), st.text(max_size=10), st.integers(-(1 << 63), (1 << 63) - 1))
def test_they_hold(number: float, text: str, integer: int) -> None:
    for kind, value in ((T.DOUBLE, number), (T.STRING, text), (T.LONG, integer)):
        found = make_widest_range("c", ValueKind(kind))
        assert found is not None
        low, middle, high = (make_avro_key(each, found.kind) for each in (found.least, value, found.greatest))
        assert low <= middle <= high
