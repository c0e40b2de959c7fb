from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.cli.values import escape_controls, format_size, to_json, to_text


@given(st.text())
def test_nothing_printed_drives_the_terminal(text: str) -> None:
    assert escape_controls(text).isprintable()
    assert to_text(text).isprintable()
    assert to_text([text, {text: text}, [(text, text)]]).isprintable()


def test_escape_sequences_are_shown() -> None:
    assert escape_controls("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
    assert escape_controls("a\nb", lines=True) == "a\nb"
    assert escape_controls("žluť [bold]") == "žluť [bold]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        (Decimal("1.50"), "1.50"),
        (b"\x00\xff", "00ff"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02 03:04:05+00:00"),
        ([1, None], "[1, null]"),
        ([("k", 1)], "{k: 1}"),
        ({"a": None, "b": [True]}, "{a: null, b: [true]}"),
    ],
)
def test_text(value: object, text: str) -> None:
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("0.10"), "0.10"),
        (b"\x00\xff", "AP8="),
        (date(2026, 1, 2), "2026-01-02"),
        ([("k", Decimal(1)), ("l", None)], {"k": "1", "l": None}),
        ([(1, "x")], [[1, "x"]]),
        ({"a": [b""]}, {"a": [""]}),
    ],
)
def test_json(value: object, expected: object) -> None:
    assert to_json(value) == expected
    json.dumps(to_json(value), allow_nan=False)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (4995, "5.0 KB"), (99_940, "99.9 KB"), (99_960, "100 KB"),
     (999_499, "999 KB"), (999_600, "1.0 MB"), (123_456_789, "123 MB"), (10**18, "1000 PB"), (None, "")],
)  # fmt: skip
def test_sizes(count: int | None, text: str) -> None:
    assert format_size(count) == text
