"""Split the text of a Spark SQL filter into tokens, as Spark's lexer (``SqlBaseLexer``) does.

The longest match wins, so ``1a`` is a name. Strings have single or double quotes; a quote inside is doubled or escaped
by a backslash. ``r'..'`` is a raw string. A name in backquotes may contain any characters. Numeric and binary literals
get the value and type that Spark's parser (``AstBuilder``) gives them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.predicate import Literal
from hoodie_py.table.filter.types import INTEGRAL_BOUNDS, MAX_PRECISION, find_literal_decimal

#: Longer filters, in characters, are refused at once.
MAX_LENGTH = 1_000_000

# The time is linear in the length of the text: possessive quantifiers do not backtrack.
_BLANK = re.compile(r"(?:\s|--[^\r\n]*|/\*.*?\*/)+", re.DOTALL)
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[LSYDFlsydf])?(?!\w)", re.ASCII)
_QUOTED = re.compile(r"`((?:[^`]|``)++)`")
_STRING = re.compile(r"""'((?:[^'\\]|\\.|'')*+)'|"((?:[^"\\]|\\.|"")*+)\"""", re.DOTALL)
_RAW = re.compile(r"""[rR](?:'([^']*)'|"([^"]*)")""")
_SYMBOL = re.compile(r"<=>|<=|>=|<>|!=|==|!<|!>|::|\|\||->|=>|<<|>>|[=<>+\-*/%(),.!&|^~\[\]{}:;?@$]")
_BACKSLASH = r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7][0-7])|(.))"
_ESCAPE = re.compile(_BACKSLASH + r"|(')'", re.DOTALL)
_ESCAPE_DOUBLE = re.compile(_BACKSLASH + r'|(")"', re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SUFFIX_TYPES = {"Y": pa.int8(), "S": pa.int16(), "L": pa.int64()}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: ``kind`` is word, name (backquoted), string, number, symbol or end; ``position`` counts from 0."""

    kind: str
    text: str
    position: int


def tokenize(text: str) -> list[Token]:
    """Split a filter; the last token has the kind ``end``.

    Raises:
        InvalidQueryError: the text is too long, or contains an unknown character or an unclosed string.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidQueryError(f"The filter has {len(text)} characters, more than the {MAX_LENGTH} allowed.")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        blank = _BLANK.match(text, position)
        if blank is not None:
            position = blank.end()
            continue
        token, position = _read_token(text, position)
        tokens.append(token)
    tokens.append(Token("end", "", len(text)))
    return tokens


def _read_token(text: str, position: int) -> tuple[Token, int]:
    string = _STRING.match(text, position)
    if string is not None:
        return Token("string", _unescape(string, position), position), string.end()
    raw = _RAW.match(text, position)
    if raw is not None:
        return Token("string", raw[1] if raw[1] is not None else raw[2], position), raw.end()
    number, word = _NUMBER.match(text, position), _WORD.match(text, position)
    if number is not None and (word is None or number.end() >= word.end()):
        return Token("number", number[0], position), number.end()
    if word is not None:
        return Token("word", word[0], position), word.end()
    quoted = _QUOTED.match(text, position)
    if quoted is not None:
        return Token("name", quoted[1].replace("``", "`"), position), quoted.end()
    symbol = _SYMBOL.match(text, position)
    if symbol is not None and not text.startswith("/*", position):
        return Token("symbol", symbol[0], position), symbol.end()
    what = {"'": "a string", '"': "a string", "`": "a name", "/": "a comment"}.get(text[position])
    problem = f"{what} is not closed" if what else f"unexpected character {text[position]!r}"
    raise InvalidQueryError(f"The filter is not valid SQL: {problem}.", position=position)


def _unescape(match: re.Match[str], position: int) -> str:
    body = match[1] if match[1] is not None else match[2]

    def replace(escape: re.Match[str]) -> str:
        four, eight, octal, single, doubled = escape.groups()
        if four or eight:
            code = int(four or eight, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise InvalidQueryError(f"The escape {escape[0]} names no character.", position=position)
            return chr(code)
        if octal:
            return chr(int(octal, 8))
        return str(doubled) if doubled else _ESCAPED.get(single, single)

    return (_ESCAPE if match[1] is not None else _ESCAPE_DOUBLE).sub(replace, body)


def parse_hex(text: str) -> bytes | None:
    """Parse hexadecimal digits; if their number is odd, the first one is a byte of its own. None for other text."""
    digits = text.zfill(len(text) + len(text) % 2)
    try:
        return bytes.fromhex(digits) if digits.isalnum() or not digits else None
    except ValueError:
        return None


def parse_number(text: str) -> Literal | None:
    """Parse a number. Its suffix gives the type, else it is int, bigint or decimal; an exponent makes it a double."""
    if text.endswith("BD"):
        return _parse_decimal(text[:-2])
    if text[-1] in _SUFFIX_TYPES:
        type_, text = _SUFFIX_TYPES[text[-1]], text[:-1]
        low, high = INTEGRAL_BOUNDS[type_]
        value = int(text) if text.lstrip("-").isdecimal() and len(text) <= 40 else None
        return Literal(value, type_) if value is not None and low <= value <= high else None
    if text[-1] in "DF" or "E" in text:
        return _parse_real(text)
    if "." in text or len(text) > 20:
        return _parse_decimal(text)
    whole = int(text)
    for type_ in (pa.int32(), pa.int64()):
        if INTEGRAL_BOUNDS[type_][0] <= whole <= INTEGRAL_BOUNDS[type_][1]:
            return Literal(whole, type_)
    return _parse_decimal(text)


def _parse_decimal(text: str) -> Literal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    exponent = int(value.as_tuple().exponent)
    if exponent > MAX_PRECISION or exponent < -MAX_PRECISION:
        return None
    if exponent > 0:
        value = Decimal(int(value))
    type_ = find_literal_decimal(value)
    return None if type_ is None else Literal(value, type_)


def _parse_real(text: str) -> Literal | None:
    single = text.endswith("F")
    value = float(text.rstrip("DF"))
    if single:
        value = pa.scalar(value, pa.float64()).cast(pa.float32(), safe=False).as_py()
    return Literal(value, pa.float32() if single else pa.float64()) if math.isfinite(value) else None
