"""Statistics that Java makes up are not believed: each case is one that Java 1.2.0 wrote of a table of all types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hoodie_py.formats.indexes.bounds import V1, V2, ValueKind, ValueType, make_value_types, wrap_values
from hoodie_py.formats.indexes.ranges import BOUND_TYPE as UNION
from hoodie_py.formats.indexes.ranges import TrustedRanges, read_trusted_ranges

BASE, LOG = "f-0_0-1-1_001.parquet", ".f-0_001.log.1_0-1-1"
T = ValueType


def read(
    kind: ValueType,
    type_: pa.DataType,
    bounds: tuple[Any, Any],
    *,
    values: int = 10,
    nulls: int = 0,
    size: int = 100_000,
    name: str = BASE,
    deleted: bool = False,
    version: int = V2,
    partitions: bool = False,
) -> TrustedRanges:
    kinds = [ValueKind(kind)]
    least, greatest = (wrap_values([each], kinds, version, UNION) for each in bounds)
    row = {
        "fileName": pa.array([name]),
        "minValue": least,
        "maxValue": greatest,
        "valueCount": pa.array([values]),
        "nullCount": pa.array([nulls]),
        "totalUncompressedSize": pa.array([size]),
        "isDeleted": pa.array([deleted]),
    }
    if version == V2:
        row["valueType"] = make_value_types(kinds, version)
    return read_trusted_ranges(
        pa.StructArray.from_arrays(list(row.values()), list(row)), type_, of_partitions=partitions
    )


def bounds_of(found: TrustedRanges) -> tuple[Any, Any]:
    return found.least[0].as_py(), found.greatest[0].as_py()


def test_statistics_that_are_whole_hold() -> None:
    found = read(T.INT, pa.int32(), (1, 5), nulls=2)
    assert bounds_of(found) == (1, 5)
    assert (found.no_nulls[0], found.all_null[0], found.no_rows[0]) == (False, False, False)
    assert bounds_of(read(T.STRING, pa.string(), ("a", "b"))) == ("a", "b")
    assert read(T.INT, pa.int32(), (1, 5)).no_nulls[0]


def test_bounds_of_columns_that_are_all_null_are_none() -> None:
    found = read(T.INT, pa.int32(), (0, 0), nulls=10)
    assert bounds_of(found) == (None, None)
    assert found.all_null[0]


def test_a_text_too_long_for_statistics_is_not_null() -> None:
    found = read(T.STRING, pa.string(), (None, None), nulls=10)
    assert bounds_of(found) == (None, None)
    assert not found.all_null[0]
    assert read(T.STRING, pa.string(), (None, None), nulls=10, size=29).all_null[0]
    assert read(T.STRING, pa.string(), (None, None), nulls=10, size=0, name=LOG).all_null[0]


def test_texts_with_nulls_may_be_bounds_of_other_row_groups() -> None:
    assert bounds_of(read(T.STRING, pa.string(), ("a", "b"), nulls=1)) == (None, None)
    assert bounds_of(read(T.STRING, pa.string(), ("a", "b"), nulls=1, size=500)) == ("a", "b")
    assert bounds_of(read(T.STRING, pa.string(), ("a", "b"), nulls=1, size=0, name=LOG)) == ("a", "b")
    assert bounds_of(read(T.STRING, pa.string(), ("a", "b"), nulls=1, name="p", partitions=True)) == (None, None)


def test_bounds_of_floats_around_zero_may_come_from_a_nan() -> None:
    for bounds in ((0.0, 0.0), (0.0, 9.0), (-5.0, 9.0), (-0.0, 3.0)):
        assert bounds_of(read(T.DOUBLE, pa.float64(), bounds)) == (None, None)
        assert bounds_of(read(T.DOUBLE, pa.float64(), bounds, name=LOG)) == bounds
        assert bounds_of(read(T.DOUBLE, pa.float64(), bounds, name=LOG, partitions=True)) == (None, None)
    assert bounds_of(read(T.DOUBLE, pa.float64(), (1.0, 9.0))) == (1.0, 9.0)
    assert bounds_of(read(T.DOUBLE, pa.float64(), (1.0, float("nan")), name=LOG)) == (1.0, None)


def test_a_log_file_that_only_deletes_has_no_rows() -> None:
    found = read(T.NULL, pa.int32(), (None, None), values=0, name=LOG)
    assert (found.no_nulls[0], found.all_null[0], found.no_rows[0]) == (True, True, True)


def test_times_without_bounds_in_version_1_may_be_int96() -> None:
    type_ = pa.timestamp("us", "UTC")
    assert not read(T.TIMESTAMP_MICROS, type_, (None, None), nulls=10, version=V1).all_null[0]
    assert read(T.TIMESTAMP_MICROS, type_, (0, 0), nulls=10, version=V1).all_null[0]
    assert read(T.TIMESTAMP_MICROS, type_, (None, None), nulls=10).all_null[0]


def test_deleted_statistics_say_nothing() -> None:
    found = read(T.INT, pa.int32(), (1, 5), deleted=True)
    assert bounds_of(found) == (None, None)
    assert not any((found.no_nulls[0], found.all_null[0], found.no_rows[0]))


def test_negative_counts_say_nothing_of_nulls() -> None:
    found = read(T.INT, pa.int32(), (1, 5), nulls=-1, values=-1)
    assert not any((found.no_nulls[0], found.all_null[0], found.no_rows[0]))
