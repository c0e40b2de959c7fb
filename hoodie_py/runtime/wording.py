"""Words of messages that depend on numbers."""

from __future__ import annotations


def format_count(number: int, one: str) -> str:
    """Return a count with its noun: "1 log file", "3 log files"."""
    return f"{number:,} {one if number == 1 else one + 's'}"
