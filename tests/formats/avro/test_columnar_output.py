"""Columns put together from parts equal Arrow's own joining of them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.avro import columnar_output as avro_parts
from hoodie_py.formats.avro.columnar_cursor import Misfit
from hoodie_py.formats.avro.columnar_output import JoinedParts

_UTC = datetime.UTC
_VALUES = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=30),
    pa.binary(): st.binary(max_size=30),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(_UTC)),
    pa.decimal128(18, 4): st.integers(-(10**18) + 1, 10**18 - 1).map(lambda digits: Decimal(digits).scaleb(-4)),
    pa.list_(pa.string()): st.lists(st.none() | st.text(max_size=5), max_size=3),
    pa.struct({"a": pa.int32(), "b": pa.string()}): st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 9), "b": st.none() | st.text(max_size=5)}
    ),
    pa.null(): st.none(),
}


@st.composite
def _parts(draw: st.DrawFn) -> list[pa.Array]:
    """Draw parts of a column: slices of arrays, some without a row."""
    type_ = draw(st.sampled_from(list(_VALUES)))
    values = _VALUES[type_] if draw(st.booleans()) else st.none() | _VALUES[type_]
    parts = []
    for items in draw(st.lists(st.lists(values, max_size=20), min_size=1, max_size=5)):
        front = draw(st.integers(0, len(items)))
        missing = draw(st.integers(0, 9)) == 0  # pa.nulls, which shares its buffers, is what is read of nulls alone
        parts.append(pa.nulls(len(items), type_) if missing else pa.array(items, type_).slice(front))
    return parts


def _joined(parts: list[list[pa.Array]], content: int = 0) -> list[pa.Array]:
    schema = pa.schema([(str(number), column.type) for number, column in enumerate(parts[0])])
    joined = JoinedParts(schema, sum(len(part[0]) for part in parts), content)
    for part in parts:
        joined.add(part)
    return joined.finish()


@given(_parts(), st.integers(0, 1000))
def test_parts_of_a_column_are_joined(parts: list[pa.Array], content: int) -> None:
    (whole,) = _joined([[part] for part in parts], content)
    whole.validate(full=True)
    assert whole.equals(pa.concat_arrays(parts))


def test_columns_keep_their_order() -> None:
    first = [pa.array([1, 2]), pa.array(["a", None]), pa.array([[1], []])]
    second = [pa.array([3]), pa.array(["bc"]), pa.array([None], pa.list_(pa.int64()))]
    wanted = [pa.concat_arrays(both) for both in zip(first, second, strict=True)]
    assert _joined([first, second]) == wanted


def test_room_for_texts_is_bounded_by_what_they_are_decoded_from() -> None:
    """A first part of long texts does not promise that a million more are as long."""
    joined = JoinedParts(pa.schema({"t": pa.string()}), 1_000_001, 5000)
    before = pa.total_allocated_bytes()
    joined.add([pa.array(["x" * 1000])])
    assert pa.total_allocated_bytes() - before <= 5000 + 1000
    joined.add([pa.array(["y"] * 1_000_000)])
    (whole,) = joined.finish()
    assert whole[0].as_py() == "x" * 1000
    assert whole.slice(1).equals(pa.array(["y"] * 1_000_000))


def test_more_texts_than_an_array_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_parts, "_LONGEST_TEXTS", 10)
    with pytest.raises(Misfit):
        _joined([[pa.array(["12345"])], [pa.array(["678901"])]])
    (whole,) = _joined([[pa.array(["12345"])], [pa.array(["67890"])]])
    assert whole.to_pylist() == ["12345", "67890"]
