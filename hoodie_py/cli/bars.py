"""Bar charts on a terminal: one line per value, drawn in eighths of a character."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from hoodie_py.cli.console import make_stdout
from hoodie_py.cli.values import escape_controls, format_size
from hoodie_py.runtime.wording import format_count

_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDEST, _NARROWEST = 40, 8
_MOST_LINES = 12
_MOST_SPANS = 24
_SPANS = (
    ("second", timedelta(seconds=1), "%H:%M:%S"),
    ("minute", timedelta(minutes=1), "%Y-%m-%d %H:%M"),
    ("hour", timedelta(hours=1), "%Y-%m-%d %H:00"),
    ("day", timedelta(days=1), "%Y-%m-%d"),
    ("week", timedelta(days=7), "week of %Y-%m-%d"),
    ("4 weeks", timedelta(days=28), "from %Y-%m-%d"),
    ("year", timedelta(days=364), "from %Y-%m-%d"),
)
# Spans are counted from a Monday, so that weeks begin on Mondays.
_MONDAY = datetime(1969, 12, 29)  # noqa: DTZ001 - instants are naive times of the table's zone


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a chart: its label, its value, and the value as text."""

    label: str
    value: float
    text: str


def draw_bar(value: float, most: float, width: int, *, is_plain: bool = False) -> str:
    """Return the bar of a value; the value ``most`` gets ``width`` characters.

    A positive value always gets a visible bar, however small it is. ``is_plain`` is for terminals without block
    characters.
    """
    if value <= 0 or most <= 0:
        return ""
    eighths = max(round(min(value / most, 1) * width * 8), 1)
    if is_plain:
        return "#" * max(round(eighths / 8), 1)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def print_bars(title: str, bars: Sequence[Bar]) -> None:
    """Print bars below a title, as wide as the terminal allows."""
    console = make_stdout()
    taken = max(len(escape_controls(each.label)) for each in bars) + max(len(each.text) for each in bars) + 3
    width = min(max(min(console.width, 120) - taken, _NARROWEST), _WIDEST)
    most = max(each.value for each in bars)
    is_plain = not console.encoding.startswith("utf")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", overflow="fold")
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for each in bars:
        bar = draw_bar(each.value, most, width, is_plain=is_plain)
        grid.add_row(*map(Text, (escape_controls(each.label), bar, each.text)))
    console.print(f"\n{title}")
    console.print(grid)


def count_sizes(sizes: Iterable[int]) -> list[Bar]:
    """Return how many files have which size, from the smallest to the largest.

    Each bar covers a factor of four: 1 to 4 bytes, 4 to 16 bytes, and so on.
    """
    found: dict[int, list[int]] = {}
    for size in sizes:
        found.setdefault((max(size, 1).bit_length() - 1) // 2, []).append(size)
    if not found:
        return []
    steps = range(min(found), max(found) + 1)
    return [
        Bar(
            f"{format_size(4**step)} to {format_size(4 ** (step + 1))}",
            len(found.get(step, ())),
            f"{format_count(len(found.get(step, ())), 'file')}, {format_size(sum(found.get(step, ())))}",
        )
        for step in steps
    ]


def compare_logs(sizes: Mapping[str, tuple[int, int]]) -> list[Bar]:
    """Return the ratio of log bytes to base file bytes of each place, greatest first, at most 12 of them.

    ``sizes``: bytes of base files and bytes of log files by place. Places without base files come first, because all
    their data is in logs.
    """
    found = []
    for place, (base, log) in sizes.items():
        text = f"{format_size(log)} on {format_size(base)}" if base else f"{format_size(log)}, no base file"
        if log:
            found.append(Bar(place, log / base if base else float("inf"), text))
    found.sort(key=lambda each: (-each.value, each.label))
    longest = max((each.value for each in found if each.value != float("inf")), default=1.0)
    return [
        Bar(
            each.label,
            min(each.value, longest),
            each.text if each.value == float("inf") else f"{each.value:.2f}: {each.text}",
        )
        for each in found[:_MOST_LINES]
    ]


def count_commits(commits: Sequence[tuple[datetime, Mapping[str, Any]]]) -> tuple[str, list[Bar]]:
    """Return the name of a span of time, and one bar per span with its commits, oldest first.

    The span is the shortest one that gives at most 24 bars. Spans without commits get a bar, too.
    """
    times = [time for time, _ in commits]
    ends = min(times), max(times)
    fitting = (each for each in _SPANS if (ends[1] - _MONDAY) // each[1] - (ends[0] - _MONDAY) // each[1] < _MOST_SPANS)
    unit, span, form = next(fitting, _SPANS[-1])
    first, last = ((time - _MONDAY) // span for time in ends)
    bars = []
    for number in range(first, last + 1):
        inside = [row for time, row in commits if (time - _MONDAY) // span == number]
        rows = sum(row["inserts"] + row["updates"] + row["deletes"] for row in inside)
        text = f"{len(inside)}, {format_count(rows, 'row')}, {format_size(sum(row['bytes'] for row in inside))}"
        bars.append(Bar((_MONDAY + number * span).strftime(form), len(inside), text if inside else "0"))
    return unit, bars
