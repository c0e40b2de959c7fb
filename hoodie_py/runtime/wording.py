"""Words of messages that depend on numbers, and results that notebooks show as a sentence."""

from __future__ import annotations

from typing import Protocol


class Printer(Protocol):
    """The object that IPython passes to ``_repr_pretty_``."""

    def text(self, text: str) -> None:
        """Print a text."""
        ...


class Sentence:
    """A result whose ``str`` is a sentence: notebooks and IPython show it; ``repr`` has every field."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # IPython takes the first class that defines this method or a repr, and dataclasses define a repr.
        cls._repr_pretty_ = Sentence._repr_pretty_  # type: ignore[method-assign]

    def _repr_pretty_(self, printer: Printer, _cycle: bool) -> None:
        printer.text(str(self))


def format_count(number: int, one: str) -> str:
    """Return a count with its noun: "1 log file", "3 log files"."""
    return f"{number:,} {one if number == 1 else one + 's'}"
