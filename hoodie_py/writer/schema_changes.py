"""The changes that a write or an alteration makes to a table's schema, and which changes need the caller's consent.

A change of the schema is permanent: every later read and write has it. This is the rule, for all writes and for
``alter``:

* A change is *without loss* if each value of the old type has one value of the new type that shows the same: int to
  long and double, float to double (by its text: 1.1 stays 1.1), text to bytes, whole numbers to decimals that hold all
  their digits, and decimals to wider ones. So are new columns, columns that become nullable, and another order.
* All other changes of type may lose digits (long to double, int to float, numbers to short decimals), may have no value
  (text to date), or turn numbers, dates and bytes into text, which sorts and compares differently from then on. Such a
  change needs consent: the argument ``allow_loss=True`` or, for writes, the option
  ``hoodie.write.schema.changes=LOSSY``, by which the schema follows the rows as Java's does (Hudi
  ``AvroSchemaEvolutionUtils``).
* With ``hoodie.write.schema.changes=NONE`` a write changes nothing in the schema, not even by a new column.

Dropping columns takes an option of its own, which counts as consent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.columns import name_plain_type
from hoodie_py.formats.avro.schema import write_in_full
from hoodie_py.options.write import LOSSLESS, LOSSY, SCHEMA_CHANGES

_WITHOUT_LOSS = frozenset({
    ("int", "long"), ("int", "double"), ("float", "double"), ("string", "binary"),
})  # fmt: skip
_WHOLE_DIGITS: Mapping[str, int] = {"int": 10, "long": 19}
_DECIMAL = re.compile(r"decimal\w*\((\d+), (\d+)\)")
_NESTED = ("record", "array", "map")
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One change of a table's schema.

    Attributes:
        column: its path, such as ``st.a``, ``tags.element`` and ``scores.value``.
        before: the old type, by Avro's name; None if the column is new.
        after: the new type; None if the column is dropped.
        what: the change in words, such as "becomes double, was long".
        loses: whether values may lose digits, or become text.
    """

    column: str
    before: str | None
    after: str | None
    what: str
    loses: bool = False

    def __str__(self) -> str:
        return f"{self.column} {self.what}"


def may_lose(before: str, after: str) -> bool:
    """Whether a change between two types may lose something.

    The types are not nested, and named by ``name_plain_type``.
    """
    old, new = _DECIMAL.match(before), _DECIMAL.match(after)
    if new is None:
        return before != after and (before, after) not in _WITHOUT_LOSS
    scale, whole = int(new[2]), int(new[1]) - int(new[2])
    if old is None:
        return not _WHOLE_DIGITS.get(before, 1 << 10) <= whole
    return not (int(old[2]) <= scale and int(old[1]) - int(old[2]) <= whole)


def list_changes(before: str, after: str) -> tuple[SchemaChange, ...]:
    """Return the differences between a table's Avro schema (JSON) and its next one."""
    if before == after:
        return ()
    return tuple(_compare(write_in_full(json.loads(before)), write_in_full(json.loads(after)), ""))


def check_changes(changes: Sequence[SchemaChange], options: Mapping[str, str]) -> None:
    """Refuse changes that the options of a write do not allow.

    Raises:
        InvalidQueryError: names each refused change.
    """
    allowed = SCHEMA_CHANGES.read(options)
    refused = [each for each in changes if allowed != LOSSY and (each.loses or allowed != LOSSLESS)]
    if not refused:
        return
    named = describe_changes(refused)
    if allowed == LOSSLESS:
        text = f"The rows would change the table's schema so that values may lose digits or become text: {named}."
        hint = (
            f"Cast the column as the table has it. Or say allow_loss=True (option {SCHEMA_CHANGES}={LOSSY}): then the "
            "table's column gets the rows' type for good."
        )
    else:
        text = f"The rows would change the table's schema, and {SCHEMA_CHANGES}={allowed} allows no change: {named}."
        hint = "Write the table's columns in the table's types."
    raise InvalidQueryError(text, hint=hint, column=refused[0].column)


def describe_changes(changes: Sequence[SchemaChange]) -> str:
    """Return the changes as a list in one line; if they are very many, only the first."""
    more = "" if len(changes) <= _SHOWN else f" and {len(changes) - _SHOWN:,} more"
    return "; ".join(map(str, changes[:_SHOWN])) + more


def _compare(old: Any, new: Any, path: str) -> Iterator[SchemaChange]:
    """Yield the changes of a record's fields."""
    known = {each["name"]: each for each in old["fields"]}
    found = {each["name"]: each for each in new["fields"]}
    for name, field in known.items():
        place = f"{path}{name}"
        if name not in found:
            yield SchemaChange(place, _name(field["type"]), None, "is dropped")
            continue
        yield from _compare_types(field["type"], found[name]["type"], place)
    for name, field in found.items():
        if name not in known:
            type_ = _name(field["type"])
            yield SchemaChange(f"{path}{name}", None, type_, f"is added, of type {type_}")
    both = [name for name in known if name in found]
    moved = [name for name in found if name in known]
    for at, name in enumerate(moved):
        if name != both[at]:
            type_ = _name(found[name]["type"])
            yield SchemaChange(f"{path}{name}", type_, type_, f"moves to place {at + 1}")
            return


def _compare_types(old: Any, new: Any, place: str) -> Iterator[SchemaChange]:
    if _is_optional(new) and not _is_optional(old):
        yield SchemaChange(place, _name(old), _name(new), "may be null from now on")
    old, new = _strip_null(old), _strip_null(new)
    if old == new:
        return
    kinds = [each.get("type") if isinstance(each, dict) else each for each in (old, new)]
    if kinds == ["record", "record"] and "logicalType" not in old:
        yield from _compare(old, new, f"{place}.")
    elif kinds == ["array", "array"]:
        yield from _compare_types(old["items"], new["items"], f"{place}.element")
    elif kinds == ["map", "map"]:
        yield from _compare_types(old["values"], new["values"], f"{place}.value")
    else:
        before, after = _name(old), _name(new)
        yield SchemaChange(place, before, after, f"becomes {after}, was {before}", may_lose(before, after))


def _is_optional(node: Any) -> bool:
    return isinstance(node, list) and "null" in node


def _strip_null(node: Any) -> Any:
    members = [each for each in node if each != "null"] if isinstance(node, list) else [node]
    return members[0] if len(members) == 1 else node


def _name(node: Any) -> str:
    """Return a type's name; if schemas with ids do not support the type, its Avro name."""
    node = _strip_null(node)
    kind = node.get("type") if isinstance(node, dict) else node
    if kind in _NESTED or isinstance(node, list):
        return "union" if isinstance(node, list) else str(node.get("logicalType", kind))
    try:
        return _DECIMAL.sub(r"decimal(\1, \2)", name_plain_type(node)).partition("[")[0]
    except UnsupportedFeatureError:
        return str(node.get("logicalType", kind) if isinstance(node, dict) else node)
