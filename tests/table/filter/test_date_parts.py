"""Parts of dates and times; ``test_filter_spark_oracle`` asks Spark for more."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.date_parts import compute_part
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.filter.sql_settings import SqlSettings


@given(st.dates())
def test_parts_of_dates_agree_with_python(day: date) -> None:
    values = pa.array([day, None])
    for name, part in (("year", day.year), ("month", day.month), ("day", day.day), ("quarter", (day.month + 2) // 3)):
        assert compute_part(name, values).to_pylist() == [part, None]


@given(st.datetimes())
def test_parts_of_times_agree_with_python(moment: datetime) -> None:
    values = pa.array([moment, None], pa.timestamp("us"))
    for name in ("hour", "minute", "second"):
        assert compute_part(name, values).to_pylist() == [getattr(moment, name), None]


def test_years_that_python_lacks() -> None:
    days = pa.array([-(2**31), 2**31 - 1], pa.int32()).cast(pa.date32())
    assert compute_part("year", days).to_pylist() == [-5877641, 5881580]


@pytest.mark.parametrize(
    ("text", "zone", "passes"),
    [
        ("hour(at) = 7", "UTC", True),
        ("hour(at) = 3", "America/New_York", True),  # half past two is skipped
        ("day(at) = 9 and month(at) = 3", "Pacific/Honolulu", True),
        ("year(at) = 2024", "UTC", True),
        ("hour(day) = 0 and minute('2024-01-01 10:20:30') = 20 and second(local) = 5", "Europe/Berlin", True),
    ],
)
def test_parts_of_timestamps_are_those_of_the_clock(text: str, zone: str, passes: bool) -> None:
    at = datetime(2024, 3, 10, 7, 30, 5)
    columns = {
        "at": pa.array([at], pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
        "day": pa.array([at.date()]),
        "local": pa.array([at], pa.timestamp("us")),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    assert evaluate(parse_sql(text, batch.schema, settings=SqlSettings(zone)), batch).to_pylist() == [passes]


def test_a_number_has_no_year() -> None:
    with pytest.raises(InvalidQueryError, match="function year needs a date"):
        parse_sql("year(i) = 2024", pa.schema([("i", pa.int32())]))
