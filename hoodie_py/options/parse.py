"""What the text of an option means: one reader for each kind of value, and one kind of answer where it has none.

An option is its key, a string, so it stands wherever a key does: in the dicts that users give and in messages. It knows
besides which older names it had (the first name given counts), what it is when nobody says anything, and what texts it
takes. Those are what Java takes and means the same by: flags are ``true`` or ``false`` in any case (Java's
``Boolean.parseBoolean`` takes every other text for no, which here is an error), numbers have digits only. A text of
blanks is none.
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
    """A key that users may give.

    Attributes:
        aliases: older names, which count where the key itself is not given.
    """

    __slots__ = ("aliases",)
    aliases: tuple[str, ...]

    def __new__(cls, key: str, aliases: tuple[str, ...] = ()) -> Self:
        """Make an option of its key."""
        made = super().__new__(cls, key)
        made.aliases = aliases
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a plain string."""
        return str, (str(self),)

    @property
    def names(self) -> tuple[str, ...]:
        """The key and its older names."""
        return (str(self), *self.aliases)

    def find_text(self, options: Mapping[str, str]) -> str | None:
        """Return what is given, without blanks around it; None where there is nothing."""
        for name in self.names:
            value = options.get(name)
            if value is not None and value.strip():
                return value.strip()
        return None

    def check(self, options: Mapping[str, str]) -> None:
        """Raise InvalidQueryError where the text given has no meaning."""

    def refuse(self, value: str, wanted: str) -> NoReturn:
        """Say that a text has no meaning, and which would.

        Raises:
            InvalidQueryError: always.
        """
        raise InvalidQueryError(f"{self} cannot be {value[:_SHOWN]!r}.", hint=f"Give {wanted}.")


class Text(Option):
    """Any text."""

    def read(self, options: Mapping[str, str]) -> str | None:
        """Return the text given, None where there is none."""
        return self.find_text(options)


class Names(Option):
    """Texts with commas between them."""

    def read(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Return the texts given, none where there are none."""
        return tuple(name.strip() for name in (self.find_text(options) or "").split(",") if name.strip())


class Flag(Option):
    """Yes or no."""

    __slots__ = ("default",)
    default: bool

    def __new__(cls, key: str, default: bool, aliases: tuple[str, ...] = ()) -> Self:
        """Make a flag."""
        made = super().__new__(cls, key, aliases)
        made.default = default
        return made

    def read_given(self, options: Mapping[str, str]) -> bool | None:
        """Return what is said; None for nothing. Raises InvalidQueryError."""
        value = self.find_text(options)
        if value is None:
            return None
        if value.lower() not in ("true", "false"):
            self.refuse(value, "true or false")
        return value.lower() == "true"

    def read(self, options: Mapping[str, str]) -> bool:
        """Return what is said, or the default. Raises InvalidQueryError."""
        found = self.read_given(options)
        return self.default if found is None else found

    def read_as_java(self, properties: Mapping[str, str]) -> bool:
        """Return what Java finds in properties that a table may have brought: all but ``true`` is no."""
        value = self.find_text(properties)
        return self.default if value is None else value.lower() == "true"

    def check(self, options: Mapping[str, str]) -> None:
        """See ``Option``."""
        self.read_given(options)


class Number(Option):
    """A whole number."""

    __slots__ = ("default", "least", "most", "unit")
    default: int
    least: int
    most: int
    unit: str

    def __new__(
        cls,
        key: str,
        default: int,
        least: int = 0,
        aliases: tuple[str, ...] = (),
        unit: str = "",
        most: int = _LARGEST,
    ) -> Self:
        """Make a number.

        Args:
            key: the key.
            default: what it is if nobody says.
            least: the least that it may be.
            aliases: older names.
            unit: what is counted, for messages.
            most: the most that it may be.
        """
        made = super().__new__(cls, key, aliases)
        made.default, made.least, made.most, made.unit = default, least, most, unit
        return made

    def read_given(self, options: Mapping[str, str]) -> int | None:
        """Return the number given; None for none. Raises InvalidQueryError."""
        value = self.find_text(options)
        if value is None:
            return None
        if not _WHOLE.fullmatch(value) or not self.least <= int(value) <= self.most:
            self.refuse(value, self._describe_wanted())
        return int(value)

    def read(self, options: Mapping[str, str]) -> int:
        """Return the number given, or the default. Raises InvalidQueryError."""
        found = self.read_given(options)
        return self.default if found is None else found

    def check(self, options: Mapping[str, str]) -> None:
        """See ``Option``."""
        self.read_given(options)

    def _describe_wanted(self) -> str:
        of = f" of {self.unit}" if self.unit else ""
        return f"a whole number{of} from {self.least} {'on' if self.most == _LARGEST else f'to {self.most}'}"


class Size(Number):
    """A number of bytes, in digits: Java has no words for larger units here."""

    def __new__(cls, key: str, default: int, least: int = 0, aliases: tuple[str, ...] = ()) -> Self:
        """Make a size."""
        return super().__new__(cls, key, default, least, aliases, "bytes")

    def _describe_wanted(self) -> str:
        return f"{super()._describe_wanted()}, such as 1073741824 for 1 GB"


class Real(Option):
    """A number that may have decimals, within bounds."""

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
    ) -> Self:
        """Make a number between two others; from 0 on where neither is said."""
        made = super().__new__(cls, key)
        made.default, made.above, made.below = default, above, below
        return made

    def read(self, options: Mapping[str, str]) -> float:
        """Return the number given, or the default. Raises InvalidQueryError."""
        value = self.find_text(options)
        if value is None:
            return self.default
        if not _REAL.fullmatch(value) or not self._is_in_range(float(value)):
            self.refuse(
                value, "a number from 0 on" if self.above < 0 else f"a number over {self.above}, below {self.below}"
            )
        return float(value)

    def check(self, options: Mapping[str, str]) -> None:
        """See ``Option``."""
        self.read(options)

    def _is_in_range(self, value: float) -> bool:
        return (value >= 0 if self.above < 0 else value > self.above) and value < self.below


class Choice(Option):
    """One of some words, in any case; the first is the default."""

    __slots__ = ("choices", "unhandled")
    choices: tuple[str, ...]
    unhandled: tuple[str, ...]

    def __new__(
        cls, key: str, choices: tuple[str, ...], aliases: tuple[str, ...] = (), unhandled: tuple[str, ...] = ()
    ) -> Self:
        """Make a choice.

        Args:
            key: the key.
            choices: the words.
            aliases: older names.
            unhandled: further words that Java Hudi takes.
        """
        made = super().__new__(cls, key, aliases)
        made.choices, made.unhandled = choices, unhandled
        return made

    def read_given(self, options: Mapping[str, str]) -> str | None:
        """Return the word given, spelled as it is declared; None for none.

        Raises:
            InvalidQueryError: another word.
            UnsupportedFeatureError: a word of Java Hudi's for what is not handled here.
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
        """Return the word given, or the default; errors as for ``read_given``."""
        return self.read_given(options) or self.choices[0]

    def check(self, options: Mapping[str, str]) -> None:
        """See ``Option``."""
        self.read_given(options)
