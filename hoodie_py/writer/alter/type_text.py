"""Types as Spark SQL writes them: ``bigint``, ``decimal(10, 2)``, ``array<string>``, ``struct<a: int, b: string>``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NoReturn

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError

_PLAIN = {
    "boolean": pa.bool_(), "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(),
    "float": pa.float32(), "real": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(),
    "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
_TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_]*)|(\d{1,3})|([<>(),:]))")
_MOST_CHARS = 100_000
_MOST_LEVELS = 64


def parse_type(text: str) -> pa.DataType:
    """Return the type that a text names.

    Raises:
        InvalidQueryError: it names no type.
    """
    if len(text) > _MOST_CHARS:
        raise InvalidQueryError(f"The name of a type has more than {_MOST_CHARS} characters.")
    parser = _Parser(text)
    found = parser.read_type(0)
    parser.end()
    return found


class _Parser:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                self._fail()
            self._tokens.append(found[0].strip())
            at = found.end()
        self._tokens.reverse()

    def read_type(self, depth: int) -> pa.DataType:
        name = self._take().lower()
        if depth > _MOST_LEVELS:
            self._fail()
        if name in _PLAIN:
            return _PLAIN[name]
        if name == "decimal":
            return self._read_decimal()
        if name == "array":
            self._expect("<")
            element = self.read_type(depth + 1)
            self._expect(">")
            return pa.list_(element)
        if name == "map":
            self._expect("<")
            key = self.read_type(depth + 1)
            self._expect(",")
            value = self.read_type(depth + 1)
            self._expect(">")
            return pa.map_(key, value)
        if name != "struct":
            self._fail()
        return self._read_struct(depth)

    def _read_decimal(self) -> pa.DataType:
        self._expect("(")
        precision, scale = self._take_number(), 0
        if self._peek() == ",":
            self._take()
            scale = self._take_number()
        self._expect(")")
        if not 0 < precision <= 38 or scale > precision:
            self._fail()
        return pa.decimal128(precision, scale)

    def _read_struct(self, depth: int) -> pa.DataType:
        self._expect("<")
        fields = []
        while True:
            name = self._take()
            if self._peek() == ":":
                self._take()
            fields.append(pa.field(name, self.read_type(depth + 1)))
            if self._peek() != ",":
                break
            self._take()
        self._expect(">")
        return pa.struct(fields)

    def end(self) -> None:
        if self._tokens:
            self._fail()

    def _peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def _take(self) -> str:
        if not self._tokens:
            self._fail()
        return self._tokens.pop()

    def _take_number(self) -> int:
        token = self._take()
        if not (token.isascii() and token.isdigit()):
            self._fail()
        return int(token)

    def _expect(self, token: str) -> None:
        if self._take() != token:
            self._fail()

    def _fail(self) -> NoReturn:
        raise InvalidQueryError(
            f"{self._text[:100]!r} is no type.",
            hint="Write types as Spark SQL does: bigint, decimal(10, 2), array<string>, struct<a: int, b: string>.",
        )


def make_type(given: pa.DataType | str) -> pa.DataType:
    """Return a type, or the type that a text names; errors as ``parse_type``."""
    return parse_type(given) if isinstance(given, str) else given


def make_fields(given: Mapping[str, pa.DataType | str] | Iterable[pa.Field] | None) -> dict[str, pa.Field]:
    """Return new columns by name; errors as ``parse_type``."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {name: pa.field(name, make_type(type_)) for name, type_ in given.items()}
    fields = list(given)
    found = {field.name: field for field in fields}
    if len(found) < len(fields):
        raise InvalidQueryError("Two new columns have one name.")
    return found
