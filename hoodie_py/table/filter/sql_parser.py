"""Parse a filter written in Spark SQL.

A recursive-descent parser with the precedence of Spark's grammar (``SqlBaseParser``): OR, AND, NOT, one predicate
(BETWEEN, IN, LIKE, IS NULL) on a value, comparisons from left to right, + -, * / %, sign. It builds typed nodes while
it parses. Spark syntax that filters do not support is refused by name. Length and nesting are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa

from hoodie_py.errors import HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.filter import binding as bind
from hoodie_py.table.filter.binding import fold
from hoodie_py.table.filter.datetime_text import parse_date, parse_timestamp
from hoodie_py.table.filter.predicate import And, IsNull, Literal, Node, Not, Or, Predicate, count_levels
from hoodie_py.table.filter.sql_functions import is_function, make_call
from hoodie_py.table.filter.sql_lexer import Token, parse_hex, parse_number, tokenize
from hoodie_py.table.filter.sql_settings import UTC_SESSION, SqlSettings
from hoodie_py.table.filter.types import MAX_PRECISION, TIMESTAMP, TIMESTAMP_NTZ

FindColumn = Callable[[Sequence[str]], Node]
"""Finds a column, or a nested field, by the names on its path."""

#: Deeper nesting is refused.
MAX_DEPTH = 50

_COMPARISONS = {
    "=": "=", "==": "=", "<=>": "<=>", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_TYPES = {
    "TINYINT": pa.int8(), "BYTE": pa.int8(), "SMALLINT": pa.int16(), "SHORT": pa.int16(),
    "INT": pa.int32(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "LONG": pa.int64(),
    "FLOAT": pa.float32(), "REAL": pa.float32(), "DOUBLE": pa.float64(), "STRING": pa.string(),
    "BINARY": pa.binary(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(), "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}  # fmt: skip
#: Words that begin or join an expression; as a column's name they need backquotes.
_RESERVED = frozenset({
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS", "ESCAPE", "CASE", "WHEN", "THEN",
    "ELSE", "SELECT", "FROM", "WHERE",
})  # fmt: skip
#: Words that may follow a value in Spark, but are not supported in filters.
_REFUSED_WORDS = frozenset(["RLIKE", "REGEXP", "ILIKE", "DIV", "COLLATE", "SELECT", "OVER", "AT", "SIMILAR"])
_REFUSED_SYMBOLS = frozenset(["&", "|", "^", "~", "[", "<<", ">>", "->", "=>", ":", "?", "@", "$", "{", "!<", "!>"])


def parse_sql(
    text: str, schema: pa.Schema, find: FindColumn | None = None, settings: SqlSettings = UTC_SESSION
) -> Predicate:
    """Parse a Spark SQL condition on the columns of a schema. ``find`` replaces the rules for finding columns.

    Raises:
        UnsupportedFeatureError: the condition depends on a session setting that is not known.
        InvalidQueryError: the text is not a condition, names an unknown column, mixes types that do not fit, or uses
            syntax that filters do not support; ``where`` contains the position (from 0) in the text.
    """
    try:
        find = find or partial(bind.find_column, schema=schema, settings=settings)
        return _Parser(tokenize(text), find, settings).parse()
    except (InvalidQueryError, UnsupportedFeatureError) as error:
        raise error.locate(filter=_shorten(text)) from None
    except RecursionError:
        raise InvalidQueryError("The filter is nested too deeply for the rest of the stack.") from None


def parse_value(text: str, find: FindColumn, settings: SqlSettings = UTC_SESSION) -> Node:
    """Parse a Spark SQL expression of any type. Raises as ``parse_sql``."""
    try:
        return _Parser(tokenize(text), find, settings).parse_value()
    except (InvalidQueryError, UnsupportedFeatureError) as error:
        raise error.locate(expression=_shorten(text)) from None
    except RecursionError:
        raise InvalidQueryError("The expression is nested too deeply for the rest of the stack.") from None


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "..."


class _Parser:
    """One pass over the tokens. Every method advances ``_at`` past the tokens that it has parsed."""

    def __init__(self, tokens: list[Token], find: FindColumn, settings: SqlSettings) -> None:
        settings.check()
        self._tokens = tokens
        self._find = find
        self._settings = settings
        self._at = 0
        self._depth = 0

    def parse(self) -> Predicate:
        return Predicate(fold(self._bind(bind.make_condition, self._parse_whole())))

    def parse_value(self) -> Node:
        return fold(self._parse_whole())

    def _parse_whole(self) -> Node:
        if self._next.kind == "end":
            self._fail("The filter is empty.")
        root = self._parse_or()
        if self._next.kind != "end":
            self._refuse_next()
        # A chain such as a + b + c is a deep tree, although it is parsed without recursion.
        if count_levels(root) > 2 * MAX_DEPTH:
            self._fail(f"The filter is nested deeper than {MAX_DEPTH} levels.")
        return root

    # conditions

    def _parse_or(self) -> Node:
        self._enter()
        operands = [self._parse_and()]
        while self._skip_word("OR"):
            operands.append(self._parse_and())
        self._depth -= 1
        if len(operands) == 1:
            return operands[0]
        return Or(tuple(self._bind(bind.make_condition, operand) for operand in operands))

    def _parse_and(self) -> Node:
        operands = [self._parse_not()]
        while self._skip_word("AND"):
            operands.append(self._parse_not())
        if len(operands) == 1:
            return operands[0]
        return And(tuple(self._bind(bind.make_condition, operand) for operand in operands))

    def _parse_not(self) -> Node:
        if not (self._skip_word("NOT") or self._skip("!")):
            return self._parse_predicate()
        self._enter()
        node = Not(self._bind(bind.make_condition, self._parse_not()))
        self._depth -= 1
        return node

    def _parse_predicate(self) -> Node:
        """Parse a value and at most one predicate on it."""
        value = self._parse_comparison()
        start = self._at
        negated = self._skip_word("NOT")
        if self._skip_word("BETWEEN"):
            node = self._parse_between(value)
        elif self._skip_word("IN"):
            node = self._parse_in(value)
        elif self._skip_word("LIKE"):
            node = self._parse_like(value)
        elif not negated and self._skip_word("IS"):
            negated = self._skip_word("NOT")
            if not self._skip_word("NULL"):
                self._refuse(f"IS {self._next.text.upper()}")
            node = IsNull(value)
        else:
            if negated and not self._is_word(*_REFUSED_WORDS):
                self._at = start
                self._refuse_next()
            return value
        return Not(node) if negated else node

    def _parse_between(self, value: Node) -> Node:
        if self._is_word("SYMMETRIC", "ASYMMETRIC"):
            self._refuse(f"BETWEEN {self._next.text.upper()}")
        low = self._parse_comparison()
        self._expect_word("AND")
        high = self._parse_comparison()
        at_least = self._bind(bind.make_comparison, ">=", value, low)
        return And((at_least, self._bind(bind.make_comparison, "<=", value, high)))

    def _parse_in(self, value: Node) -> Node:
        self._expect("(")
        if self._is_word("SELECT", "WITH"):
            self._refuse("a subquery")
        options = [self._parse_or()]
        while self._skip(","):
            options.append(self._parse_or())
        self._expect(")")
        return self._bind(bind.make_in_list, value, options)

    def _parse_like(self, value: Node) -> Node:
        if self._is_word("ANY", "ALL", "SOME") and self._tokens[self._at + 1].text == "(":
            self._refuse(f"LIKE {self._next.text.upper()}")
        pattern, escape = self._parse_comparison(), "\\"
        if self._skip_word("ESCAPE"):
            if self._next.kind != "string":
                self._fail("The escape of LIKE must be a string of one character.")
            escape = self._parse_strings()
        return self._bind(bind.make_like, value, fold(pattern), escape)

    # values

    def _parse_comparison(self) -> Node:
        value = self._parse_sum()
        while self._next.kind == "symbol" and self._next.text in _COMPARISONS:
            operator = _COMPARISONS[self._advance().text]
            value = self._bind(bind.make_comparison, operator, value, self._parse_sum())
        return value

    def _parse_sum(self) -> Node:
        value = self._parse_product()
        while self._next.kind == "symbol" and self._next.text in ("+", "-", "||"):
            operator, right = self._advance().text, self._parse_product()
            if operator == "||":
                value = self._bind(bind.make_concat, [value, right])
            else:
                value = self._bind(bind.make_arithmetic, operator, value, right)
        return value

    def _parse_product(self) -> Node:
        value = self._parse_signed()
        while self._next.kind == "symbol" and self._next.text in ("*", "/", "%"):
            operator = self._advance().text
            value = self._bind(bind.make_arithmetic, operator, value, self._parse_signed())
        return value

    def _parse_signed(self) -> Node:
        self._enter()
        if self._skip("-"):
            number = self._next.kind == "number"  # the sign belongs to the literal: -2147483648 is an int
            node = (
                self._parse_postfix(self._parse_number("-"))
                if number
                else self._bind(bind.make_negate, self._parse_signed())
            )
        elif self._skip("+"):
            node = self._bind(bind.make_plus, self._parse_signed())
        else:
            node = self._parse_postfix(self._parse_primary())
        self._depth -= 1
        return node

    def _parse_postfix(self, node: Node) -> Node:
        while self._skip("::"):
            node = self._bind(bind.make_cast, node, self._parse_type())
        following = self._next
        refused = _REFUSED_SYMBOLS if following.kind == "symbol" else _REFUSED_WORDS if following.kind == "word" else ()
        if following.text.upper() in refused:
            self._refuse_next()
        return node

    def _parse_primary(self) -> Node:
        token = self._next
        if token.kind == "number":
            return self._parse_number("")
        if token.kind == "string":
            return Literal(self._parse_strings(), pa.string())
        if self._skip("("):
            return self._parse_parenthesised()
        if token.kind == "word":
            return self._parse_word()
        if token.kind == "name":
            return self._parse_column()
        return self._refuse_next()

    def _parse_parenthesised(self) -> Node:
        if self._is_word("SELECT", "WITH"):
            self._refuse("a subquery")
        node = self._parse_or()
        if self._next.text == "," and self._next.kind == "symbol":
            self._refuse("a row of several values")
        self._expect(")")
        if self._next.text == "." and self._next.kind == "symbol":
            self._refuse("a field of an expression")
        return node

    def _parse_word(self) -> Node:
        token, following = self._next, self._tokens[self._at + 1]
        word = token.text.upper()
        if word == "CASE":
            return self._parse_case()
        if following.kind == "string":
            return self._parse_typed_literal()
        if following.kind == "symbol" and following.text == "(":
            return self._parse_call()
        if following.kind == "symbol" and following.text == ".":
            return self._parse_column()
        if word in ("TRUE", "FALSE", "NULL"):
            self._at += 1
            return Literal(None, pa.null()) if word == "NULL" else Literal(word == "TRUE", pa.bool_())
        if word == "INTERVAL" and following.kind in ("number", "word", "name"):
            self._refuse(word)
        if word in _RESERVED:
            self._refuse_next()
        return self._parse_column()

    def _parse_case(self) -> Node:
        """Parse CASE with conditions, or with a value that is compared with each WHEN."""
        self._enter()
        self._advance()
        subject = None if self._is_word("WHEN") else self._parse_or()
        conditions, values = [], []
        while self._skip_word("WHEN"):
            when = self._parse_or()
            self._expect_word("THEN")
            conditions.append(when if subject is None else self._bind(bind.make_comparison, "=", subject, when))
            values.append(self._parse_or())
        if not values:
            self._expect_word("WHEN")
        otherwise = self._parse_or() if self._skip_word("ELSE") else Literal(None, pa.null())
        self._expect_word("END")
        self._depth -= 1
        return self._bind(bind.make_case, conditions, values, otherwise)

    def _parse_call(self) -> Node:
        token = self._advance()
        name = token.text.upper()
        if name == "CAST":
            return self._parse_cast()
        if not is_function(name):
            what = "a subquery" if name == "EXISTS" else f"the function {token.text}"
            self._at -= 1
            self._refuse(what)
        self._expect("(")
        arguments = [self._parse_or()]
        while self._skip(","):
            arguments.append(self._parse_or())
        self._expect(")")
        return self._bind(make_call, name, arguments)

    def _parse_cast(self) -> Node:
        self._expect("(")
        child = self._parse_or()
        self._expect_word("AS")
        target = self._parse_type()
        self._expect(")")
        return self._bind(bind.make_cast, child, target)

    def _parse_type(self) -> pa.DataType:
        token = self._advance()
        name = token.text.upper()
        if token.kind == "word" and name in ("DECIMAL", "DEC", "NUMERIC"):
            return self._parse_decimal_type()
        if token.kind != "word" or name not in _TYPES:
            self._at -= 1
            self._refuse(f"a cast to {token.text or 'nothing'}")
        return _TYPES[name]

    def _parse_decimal_type(self) -> pa.DataType:
        if not self._skip("("):
            return pa.decimal128(10, 0)
        precision, scale = self._parse_size(), 0
        if self._skip(","):
            scale = self._parse_size()
        self._expect(")")
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            self._fail(f"There is no type decimal({precision},{scale}).")
        return pa.decimal128(precision, scale)

    def _parse_size(self) -> int:
        token = self._next
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 3:
            self._refuse_next()
        self._at += 1
        return int(token.text)

    def _parse_column(self) -> Node:
        path = [self._advance().text]
        while self._skip("."):
            if self._next.kind not in ("word", "name"):
                self._refuse_next()
            path.append(self._advance().text)
        if self._next.kind == "symbol" and self._next.text == "(":
            self._refuse(f"the function {'.'.join(path)}")
        try:
            return self._find(path)
        except InvalidQueryError as error:
            raise error.locate(position=self._tokens[self._at - 1].position) from None

    # literals

    def _parse_strings(self) -> str:
        """Join adjacent string literals, as Spark does."""
        parts = [self._advance().text]
        while self._next.kind == "string":
            parts.append(self._advance().text)
        return "".join(parts)

    def _parse_typed_literal(self) -> Node:
        word, text = self._advance().text.upper(), self._advance().text
        value: int | bytes | None = None
        if word == "DATE":
            value, type_ = parse_date(text), pa.date32()
        elif word in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return self._make_timestamp(text, word)
        elif word == "TIMESTAMP_NTZ":
            value, type_ = parse_timestamp(text, zoned=False), TIMESTAMP_NTZ
        elif word == "X":
            value, type_ = parse_hex(text), pa.binary()
        else:
            self._at -= 2
            self._refuse(f"a literal of type {word}")
        if value is None:
            self._refuse_literal(text, word)
        return Literal(value, type_)

    def _make_timestamp(self, text: str, word: str) -> Node:
        if parse_timestamp(text, zoned=True) is None:
            self._refuse_literal(text, word)
        return fold(self._bind(bind.make_cast, Literal(text, pa.string()), TIMESTAMP))

    def _refuse_literal(self, text: str, word: str) -> NoReturn:
        self._at -= 1
        self._fail(f"{text!r} is not a valid {word} literal.")

    def _parse_number(self, sign: str) -> Node:
        token = self._next
        literal = parse_number(sign + token.text.upper())
        if literal is None:
            self._fail(f"The number {sign}{token.text} is out of range.")
        self._at += 1
        return literal

    # tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _advance(self) -> Token:
        token = self._tokens[self._at]
        if token.kind == "end":
            self._refuse_next()
        self._at += 1
        return token

    def _skip(self, symbol: str) -> bool:
        found = self._next.kind == "symbol" and self._next.text == symbol
        self._at += found
        return found

    def _is_word(self, *words: str) -> bool:
        return self._next.kind == "word" and self._next.text.upper() in words

    def _skip_word(self, word: str) -> bool:
        found = self._is_word(word)
        self._at += found
        return found

    def _expect(self, symbol: str) -> None:
        if not self._skip(symbol):
            self._refuse_next(f", expected {symbol}")

    def _expect_word(self, word: str) -> None:
        if not self._skip_word(word):
            self._refuse_next(f", expected {word}")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > 2 * MAX_DEPTH:
            self._fail(f"The filter is nested deeper than {MAX_DEPTH} levels.")

    def _bind(self, build: Callable[..., Node], *arguments: Any) -> Node:
        """Build a node by the session's settings, and add the position to errors."""
        try:
            return build(*arguments, settings=self._settings)
        except HoodieError as error:
            raise error.locate(position=self._tokens[max(self._at - 1, 0)].position) from None

    def _refuse_next(self, expected: str = "") -> NoReturn:
        token = self._next
        if token.kind == "word" and token.text.upper() in _REFUSED_WORDS:
            self._refuse(token.text.upper())
        if token.kind == "symbol" and token.text in _REFUSED_SYMBOLS:
            self._refuse(f"the operator {token.text}")
        found = "the end" if token.kind == "end" else repr(token.text)
        self._fail(f"The filter is not valid SQL: unexpected {found}{expected}.")

    def _refuse(self, what: str) -> NoReturn:
        self._fail(f"A filter cannot use {what}.", hint="Filter on it after reading.")

    def _fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise InvalidQueryError(message, hint=hint, position=self._next.position)
