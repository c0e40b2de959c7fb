"""Find the only values of a column, or the only record keys, that can pass a filter.

A row that passes has one of the returned values in the column. Null is never among them, because a comparison with null
is not true. Values are the values of literals (``predicate``).

Record keys are texts. Hudi's writers have written several texts for some values (``spell_value``), so one value may
stand for several keys. For types without a certain set of texts, such as timestamps and floats, no keys are found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.arrow.arrays import cast
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.table.filter.bounds import name_expression
from hoodie_py.table.filter.predicate import And, Column, Comparison, InList, Literal, Node, Or, Predicate

if TYPE_CHECKING:
    from decimal import Decimal

_MOST = 10_000  # values or keys are looked up one by one
_MOST_DIGITS = 80
_EMPTY = "__empty__"
_SINGLE = frozenset({"SIMPLE", "NON_PARTITION", "TIMESTAMP", "GLOBAL_DELETE"})
_COMPOSITE = frozenset({"COMPLEX", "CUSTOM", "NON_PARTITION", "TIMESTAMP", "GLOBAL_DELETE"})
"""Key generators of Hudi whose keys are made of the key fields alone, for one field and for several."""


def find_allowed_values(predicate: Predicate, column: str) -> list[Any] | None:
    """Return the only values of a column that can pass, without repeats; None if the filter does not limit them.

    The column may be a function of one, as ``name_expression`` spells it.
    """
    found = _find_values(predicate.root, column)
    return None if found is None else list(found)


def find_allowed_keys(config: TableConfig, schema: pa.Schema, predicate: Predicate) -> list[str] | None:
    """Return the only record keys that can pass, without repeats; None if the filter does not limit them.

    ``schema``: the table's columns.
    """
    if not config.populate_meta_fields:
        return None
    found = _find_values(predicate.root, RECORD_KEY_FIELD)
    if found is None and _are_keys_of_columns(config):
        found = _find_keys(config, schema, predicate.root)
    return None if found is None else list(found)


def spell_value(value: Any, type_: pa.DataType) -> list[str] | None:
    """Return the texts that Hudi's writers make of a value in a key; None if they are not certain."""
    if pa.types.is_string(type_):
        return [value]
    if pa.types.is_boolean(type_):
        return ["true" if value else "false"]
    if pa.types.is_integer(type_):
        return [str(value)]
    if pa.types.is_date32(type_):  # Java's writers write the date's text, Flink's the days since 1970
        return [str(cast(pa.array([value], pa.int32()).cast(type_), pa.string())[0].as_py()), str(value)]
    if pa.types.is_decimal(type_):
        return _spell_decimal(value, type_.scale)
    return None


def _spell_decimal(value: Decimal, scale: int) -> list[str]:
    """Return the texts of a decimal with the column's scale, and with smaller scales, which the column may have had.

    Like Java's ``BigDecimal.toString``, Python's ``str`` uses an exponent for small numbers.
    """
    from decimal import Context, Decimal

    context = Context(prec=_MOST_DIGITS)
    scaled = (value.quantize(Decimal(1).scaleb(-each), context=context) for each in range(max(scale, 0) + 1))
    texts = (text for each in scaled if each == value for text in (str(each), format(each, "f")))
    return list(dict.fromkeys(texts))


def _find_values(node: Node, column: str) -> dict[Any, None] | None:
    """Return the allowed values, in order, as the keys of a dictionary; None if a node does not limit them."""
    if isinstance(node, And):
        # Every part must hold, so each list is a bound by itself.
        found = [each for each in (_find_values(part, column) for part in node.operands) if each is not None]
        return min(found, key=len) if found else None
    if isinstance(node, Or):
        return _unite(_find_values(part, column) for part in node.operands)
    listed = _find_listed(node)
    if listed is None or listed[0] != column:
        return None
    values = dict.fromkeys(listed[1])
    return values if len(values) <= _MOST else None


def _find_listed(node: Node) -> tuple[str, Sequence[Any]] | None:
    """Return a column, or a function of one, and its allowed values, for a node that lists them; else None."""
    if isinstance(node, InList):
        child: Node = node.child
        values: Sequence[Any] = [value for value in node.values if value is not None]
    elif isinstance(node, Comparison) and node.operator in ("=", "<=>"):
        child, literal = (node.right, node.left) if isinstance(node.left, Literal) else (node.left, node.right)
        if not isinstance(literal, Literal) or (literal.value is None and node.operator == "<=>"):
            return None
        values = [] if literal.value is None else [literal.value]
    else:
        return None
    name = name_expression(child)
    return None if name is None or (isinstance(child, Column) and len(child.path) > 1) else (name, values)


def _unite(parts: Iterable[dict[Any, None] | None]) -> dict[Any, None] | None:
    united: dict[Any, None] = {}
    for part in parts:
        if part is None:
            return None
        united |= part
        if len(united) > _MOST:
            return None
    return united


def _are_keys_of_columns(config: TableConfig) -> bool:
    """Whether record keys are made of the key fields by known rules, and merges keep them equal."""
    if config.merge_mode is MergeMode.CUSTOM:  # a merge may change a row's key fields
        return False
    several = len(config.record_key_fields) > 1
    generator = config.key_generator
    if not config.record_key_fields:
        return False
    return generator is None or generator in (_COMPOSITE if several else _SINGLE | _COMPOSITE)


def _find_keys(config: TableConfig, schema: pa.Schema, node: Node) -> dict[str, None] | None:
    """Return the keys made of the values that a node allows in every key field; None if it does not limit them."""
    fields = config.record_key_fields
    if isinstance(node, Or):  # first, as the product of all values is larger than the keys that the operands name
        united = _unite(_find_keys(config, schema, part) for part in node.operands)
        if united is not None:
            return united
    allowed: dict[str, dict[Any, None]] = {}
    for name in fields:
        values = _find_values(node, name) if name in schema.names else None
        if values is not None:
            allowed[name] = values
    if len(allowed) == len(fields):
        return _make_keys(config, schema, allowed)
    if isinstance(node, And):
        found = [each for each in (_find_keys(config, schema, part) for part in node.operands) if each is not None]
        return min(found, key=len) if found else None
    return None


def _make_keys(
    config: TableConfig, schema: pa.Schema, allowed: Mapping[str, Mapping[Any, None]]
) -> dict[str, None] | None:
    fields = config.record_key_fields
    texts: list[list[str]] = []
    count = 1
    for name in fields:
        spelt = [spell_value(value, schema.field(name).type) for value in allowed[name]]
        known = [each for each in spelt if each is not None]
        if len(known) < len(spelt):
            return None
        texts.append(list(itertools.chain.from_iterable(known)))
        count *= len(texts[-1])
        if count > _MOST:
            return None
    if len(fields) > 1:
        parts = ([f"{name}:{text or _EMPTY}" for text in each] for name, each in zip(fields, texts, strict=True))
        return dict.fromkeys(map(",".join, itertools.product(*parts)))
    keys = dict.fromkeys(texts[0])
    if config.key_generator not in _SINGLE:  # some releases of Hudi put the field's name into the key, others do not
        keys |= dict.fromkeys(f"{fields[0]}:{text or _EMPTY}" for text in texts[0])
    return keys
