"""Kinds of options: how each reads the text of its value, and the one error for a text that is not valid.

An option is a string, its key, so it can be used wherever a key can: in the dicts of users and in messages. It also has
older names of the key (the first that is set counts), a default, and a rule for valid texts. Every valid text means the
same in Java, but Java accepts more: its ``Boolean.parseBoolean`` takes every text but ``true`` as false, here only
``true`` and ``false`` in any case are valid. Numbers consist of digits only. A blank text counts as not set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_LARGEST = (1 << 63) - 1
_SHOWN = 100


class Option(str):
    """A key that users may give."""

    __slots__ = ("aliases",)
    aliases: tuple[str, ...]  # older names; they count if the key itself is not set

    def __new__(cls, key: str, aliases: tuple[str, ...] = ()) -> Self:
        """Make an option from its key."""
        made = super().__new__(cls, key)
        made.aliases = aliases
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the option as a plain string."""
        return str, (str(self),)

    @property
    def names(self) -> tuple[str, ...]:
        """The key and its older names."""
        return (str(self), *self.aliases)

    def find_text(self, options: Mapping[str, str]) -> str | None:
        """Return the stripped value; None if it is not set."""
        for name in self.names:
            value = options.get(name)
            if value is not None and value.strip():
                return value.strip()
        return None

    def read(self, options: Mapping[str, str]) -> Any:
        """Return the value or the default. Raises InvalidQueryError if the value is not valid."""
        return self.find_text(options)

    def check(self, options: Mapping[str, str]) -> None:
        """Check the value. Raises InvalidQueryError if it is not valid."""
        self.read(options)

    def refuse(self, value: str, wanted: str) -> NoReturn:
        """Raise InvalidQueryError for a value that is not valid."""
        raise InvalidQueryError(f"{self} cannot be {value[:_SHOWN]!r}.", hint=f"Give {wanted}.")


class Text(Option):
    """Any text."""

    def read(self, options: Mapping[str, str]) -> str | None:
        """Return the text; None if it is not set."""
        return self.find_text(options)


class Names(Option):
    """A comma-separated list of texts."""

    def read(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Return the texts; an empty tuple if the option is not set."""
        return tuple(name.strip() for name in (self.find_text(options) or "").split(",") if name.strip())


class Flag(Option):
    """True or false."""

    __slots__ = ("default",)
    default: bool

    def __new__(cls, key: str, default: bool, aliases: tuple[str, ...] = ()) -> Self:
        """Make a flag."""
        made = super().__new__(cls, key, aliases)
        made.default = default
        return made

    def read_given(self, options: Mapping[str, str]) -> bool | None:
        """Return the value; None if it is not set. Raises InvalidQueryError."""
        value = self.find_text(options)
        if value is None:
            return None
        if value.lower() not in ("true", "false"):
            self.refuse(value, "true or false")
        return value.lower() == "true"

    def read(self, options: Mapping[str, str]) -> bool:
        """Return the value or the default. Raises InvalidQueryError."""
        found = self.read_given(options)
        return self.default if found is None else found

    def read_as_java(self, properties: Mapping[str, str]) -> bool:
        """Return the value as Java reads it from table properties: every text except ``true`` is false."""
        value = self.find_text(properties)
        return self.default if value is None else value.lower() == "true"


class Number(Option):
    """A whole number."""

    __slots__ = ("default", "least", "most", "unit")
    default: int
    least: int
    most: int
    unit: str

    def __new__(
        cls, key: str, default: int, least: int = 0, aliases: tuple[str, ...] = (), unit: str = "", most: int = _LARGEST
    ) -> Self:
        """Make a number from ``least`` to ``most``; messages name its ``unit``."""
        made = super().__new__(cls, key, aliases)
        made.default, made.least, made.most, made.unit = default, least, most, unit
        return made

    def read_given(self, options: Mapping[str, str]) -> int | None:
        """Return the number; None if it is not set. Raises InvalidQueryError."""
        value = self.find_text(options)
        if value is None:
            return None
        if not _WHOLE.fullmatch(value) or not self.least <= int(value) <= self.most:
            self.refuse(value, self._describe_wanted())
        return int(value)

    def read(self, options: Mapping[str, str]) -> int:
        """Return the number or the default. Raises InvalidQueryError."""
        found = self.read_given(options)
        return self.default if found is None else found

    def _describe_wanted(self) -> str:
        of = f" of {self.unit}" if self.unit else ""
        return f"a whole number{of} from {self.least} {'on' if self.most == _LARGEST else f'to {self.most}'}"


class Size(Number):
    """A number of bytes, in digits: Java's options have no unit suffixes."""

    def __new__(cls, key: str, default: int, least: int = 0, aliases: tuple[str, ...] = ()) -> Self:
        """Make a size."""
        return super().__new__(cls, key, default, least, aliases, "bytes")

    def _describe_wanted(self) -> str:
        return f"{super()._describe_wanted()}, such as 1073741824 for 1 GB"


class Real(Option):
    """A number with decimals, within bounds."""

    __slots__ = ("above", "below", "default")
    default: float
    above: float
    below: float

    def __new__(
        cls,
        key: str,
        default: float,
        above: float = -1.0,
        below: float = float("inf"),
        aliases: tuple[str, ...] = (),
    ) -> Self:
        """Make a number between two exclusive bounds; without bounds, a number from 0 on."""
        made = super().__new__(cls, key, aliases)
        made.default, made.above, made.below = default, above, below
        return made

    def read(self, options: Mapping[str, str]) -> float:
        """Return the number or the default. Raises InvalidQueryError."""
        value = self.find_text(options)
        if value is None:
            return self.default
        if not _REAL.fullmatch(value) or not self._is_in_range(float(value)):
            self.refuse(
                value, "a number from 0 on" if self.above < 0 else f"a number over {self.above}, below {self.below}"
            )
        return float(value)

    def _is_in_range(self, value: float) -> bool:
        return (value >= 0 if self.above < 0 else value > self.above) and value < self.below


class Choice(Option):
    """One of several words, in any case; the first is the default."""

    __slots__ = ("choices", "unhandled")
    choices: tuple[str, ...]
    unhandled: tuple[str, ...]

    def __new__(
        cls, key: str, choices: tuple[str, ...], aliases: tuple[str, ...] = (), unhandled: tuple[str, ...] = ()
    ) -> Self:
        """Make a choice; ``unhandled`` are further words of Java Hudi that are not supported here."""
        made = super().__new__(cls, key, aliases)
        made.choices, made.unhandled = choices, unhandled
        return made

    def read_given(self, options: Mapping[str, str]) -> str | None:
        """Return the word in its declared spelling; None if it is not set.

        Raises:
            InvalidQueryError: the word is unknown.
            UnsupportedFeatureError: the word is one of ``unhandled``.
        """
        value = self.find_text(options)
        if value is None:
            return None
        for choice in self.choices:
            if value.lower() == choice.lower():
                return choice
        if value.upper() in self.unhandled:
            raise UnsupportedFeatureError(f"{self}={value}.", hint=f"Give one of {', '.join(self.choices)}.")
        return self.refuse(value, f"one of {', '.join(self.choices)}")

    def read(self, options: Mapping[str, str]) -> str:
        """Return the word or the default; raises as ``read_given``."""
        return self.read_given(options) or self.choices[0]
