from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.cli.values import json_of, number_of, printable, size_of, text_of


@given(st.text())
def test_nothing_printed_drives_the_terminal(text: str) -> None:
    assert printable(text).isprintable()
    assert text_of(text).isprintable()
    assert text_of([text, {text: text}, [(text, text)]]).isprintable()


def test_escape_sequences_are_shown() -> None:
    assert printable("a\x1b[31mb\n") == "a\\x1b[31mb\\n"
    assert printable("a\nb", lines=True) == "a\nb"
    assert printable("žluť [bold]") == "žluť [bold]"


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
    assert text_of(value) == text


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
    assert json_of(value) == expected
    json.dumps(json_of(value), allow_nan=False)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (4995, "5.0 KB"), (99_940, "99.9 KB"), (99_960, "100 KB"),
     (999_499, "999 KB"), (999_600, "1.0 MB"), (123_456_789, "123 MB"), (10**18, "1000 PB"), (None, "")],
)  # fmt: skip
def test_sizes(count: int | None, text: str) -> None:
    assert size_of(count) == text


def test_numbers_have_nouns() -> None:
    assert [number_of(n, "row") for n in (0, 1, 1234)] == ["0 rows", "1 row", "1,234 rows"]
