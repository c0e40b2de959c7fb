"""Bars: their lengths, and what they are of."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hoodie_py.cli.bars import compare_logs, count_commits, count_sizes, draw_bar


@pytest.mark.parametrize(
    ("value", "bar"), [(0, ""), (8, "█" * 8), (4, "█" * 4), (1, "█"), (0.5, "▌"), (0.0001, "▏"), (99, "█" * 8)]
)
def test_a_bar_is_as_long_as_its_value(value: float, bar: str) -> None:
    assert draw_bar(value, 8, 8) == bar


def test_terminals_without_block_characters_get_signs() -> None:
    assert draw_bar(4, 8, 8, is_plain=True) == "####"
    assert draw_bar(0.01, 8, 8, is_plain=True) == "#"
    assert draw_bar(0, 8, 8, is_plain=True) == draw_bar(1, 0, 8) == ""


def test_sizes_are_counted_by_fourfolds_without_gaps() -> None:
    bars = count_sizes([1, 5000, 6000, 300_000])
    assert [bar.value for bar in bars] == [1, 0, 0, 0, 0, 0, 2, 0, 0, 1]
    assert (bars[6].label, bars[6].text) == ("4.1 KB to 16.4 KB", "2 files, 11.0 KB")
    assert count_sizes([]) == []


def test_places_with_the_most_logs_come_first_and_those_without_base_files_before_all() -> None:
    bars = compare_logs({"a": (1000, 100), "b": (1000, 2000), "none": (1000, 0), "logs": (0, 5)})
    assert [bar.label for bar in bars] == ["logs", "b", "a"]
    assert [bar.value for bar in bars] == [2.0, 2.0, 0.1]
    assert [bar.text for bar in bars] == ["5 B, no base file", "2.00: 2.0 KB on 1.0 KB", "0.10: 100 B on 1.0 KB"]
    assert compare_logs({"only": (0, 5)})[0].value == 1.0
    assert compare_logs({"a": (10, 0)}) == []


ROW = {"inserts": 2, "updates": 1, "deletes": 0, "bytes": 10}


@pytest.mark.parametrize(
    ("gap", "unit"),
    [
        (timedelta(seconds=5), "second"), (timedelta(minutes=1), "minute"), (timedelta(hours=2), "hour"),
        (timedelta(days=3), "day"), (timedelta(days=30), "week"), (timedelta(days=300), "4 weeks"),
        (timedelta(days=4000), "year"),
    ],
)  # fmt: skip
def test_the_span_is_the_least_that_shows_all_commits(gap: timedelta, unit: str) -> None:
    first = datetime(2026, 3, 4, 5, 6, 7)
    found, bars = count_commits([(first, ROW), (first, ROW), (first + gap, ROW)])
    assert found == unit
    assert len(bars) <= 24
    assert (bars[0].value, bars[-1].value) == (2, 1)
    assert sum(bar.value for bar in bars) == 3
    assert bars[0].text == "2, 6 rows, 20 B"
