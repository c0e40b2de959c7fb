"""Tests of errors about rows of the input."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.row_errors import make_rows_error, refuse_rows


def test_good_rows_pass() -> None:
    refuse_rows(pa.array([False, None, False]), "Bad.", column="c")
    refuse_rows(pa.chunked_array([], pa.bool_()), "Bad.", column="c")


def test_the_first_bad_rows_are_named_across_chunks() -> None:
    bad = pa.chunked_array([[False, True], [], [None, True, True, True, True, True]])
    with pytest.raises(InvalidQueryError) as raised:
        refuse_rows(bad, "Bad.", column="c", values=pa.chunked_array([["v"] * 8]), hint="Do better.")
    where = raised.value.where
    assert (where["column"], where["bad_rows"], where["rows"]) == ("c", 6, [1, 3, 4, 5, 6])
    assert where["values"] == ["'v'"] * 5
    assert str(raised.value).endswith("Do better.")


def test_values_are_shown_short_and_always() -> None:
    long = make_rows_error([0], "Bad.", column="c", values=pa.array(["x" * 1000])).where["values"]
    assert len(long[0]) == 60
    far = make_rows_error([0], "Bad.", column="c", values=pa.array([2**62], pa.timestamp("s"))).where["values"]
    assert str(2**62) in far[0]
