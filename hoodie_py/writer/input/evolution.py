"""How the schema of a table grows by the rows of a write: new columns, and wider types (Hudi
``HoodieSchemaUtils.deduceWriterSchema``, ``AvroSchemaEvolutionUtils.reconcileSchemaRequirements``).

* New columns and struct fields come last, and are nullable, so that older files read as null. With the option to
  reconcile schemas, and rows that have all columns, the order of the rows counts, as in Java.
* A column gets the type of the rows if that is wider: int to long, float, double or string, and so on, and decimals
  that hold all digits of the table's. If the rows' type is narrower, the table's stays, and values are converted
  (``value_fit``). This holds for struct fields, list elements and map values, too. ``schema_changes`` defines which of
  these changes need the caller's consent.
* A column that the rows lack and the table requires becomes nullable, if missing columns are filled with null.
* With the option that drops columns, columns that the rows lack are removed from the table. Files keep their values,
  and a later column of the same name shows them again, as in Java.
* The stored Avro schema of all other columns is kept as it is.

One rule is stricter than Java's: columns that determine keys, partition paths or the order of versions keep types in
which they have the same text and order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.fields import find_field_type, is_any_list
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.from_arrow import make_field
from hoodie_py.formats.avro.schema import name_repeated, write_in_full
from hoodie_py.formats.column_names import fold_case
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.logical_types import RECORD_TYPES
from hoodie_py.writer.schema_changes import may_lose

_WIDER: Mapping[str, tuple[str, ...]] = {
    "int": ("long", "float", "double", "string"),
    "long": ("float", "double", "string"),
    "float": ("double", "string"),
    "double": ("string",),
}


@dataclass(frozen=True, slots=True)
class Growth:
    """How the options of a write let a schema change.

    Attributes:
        fill_missing: whether columns that the rows lack become nullable, except ``keys``.
        drop_missing: whether columns that the rows lack are dropped.
        order_of_rows: whether the order of the rows' columns counts if they have new ones and lack none.
        keys: columns that stay required.
    """

    fill_missing: bool = False
    drop_missing: bool = False
    order_of_rows: bool = False
    keys: tuple[str, ...] = ()


def evolve_schema(text: str, columns: pa.Schema, growth: Growth = Growth()) -> str:  # it is frozen
    """Return a table's Avro schema (JSON), extended by the columns of rows; the same text if nothing changes.

    Neither schema contains meta columns.

    Raises:
        InvalidQueryError: Avro does not allow a name, or it differs from another in case only.
        UnsupportedFeatureError: Hudi's tables do not support a type, or a struct's schema is defined elsewhere by name.
    """
    record = write_in_full(json.loads(text))
    if growth.fill_missing:
        lacking = [name for name in growth.keys if name not in columns.names]
        columns = pa.schema([*columns, *(pa.field(name, pa.null()) for name in lacking)])
    grown = _evolve_record(record, columns, record.get("namespace", ""), "", growth)
    if growth.order_of_rows and _count_fields(grown) > _count_fields(record):
        grown = _order_like(grown, columns)
    return text if grown == record else json.dumps(name_repeated(grown), separators=(",", ":"), ensure_ascii=False)


def _count_fields(node: Any) -> int:
    if isinstance(node, list):
        return sum(map(_count_fields, node))
    if not isinstance(node, dict):
        return 0
    inner = sum(1 + _count_fields(each["type"]) for each in node.get("fields", ()))
    return inner + sum(
        _count_fields(node[key]) for key in ("type", "items", "values") if isinstance(node.get(key), dict | list)
    )


def _order_like(node: Any, type_: Any) -> Any:
    """Return a schema with the fields in the order of the rows, in every struct whose fields the rows all have."""
    if isinstance(node, list):
        return [_order_like(each, type_) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "array" and is_any_list(type_):
        return {**node, "items": _order_like(node["items"], type_.value_type)}
    if node.get("type") == "map" and pa.types.is_map(type_):
        return {**node, "values": _order_like(node["values"], type_.item_type)}
    if node.get("type") != "record" or not (isinstance(type_, pa.Schema) or pa.types.is_struct(type_)):
        return node
    places = {field.name: (at, field.type) for at, field in enumerate(type_)}
    if not all(each["name"] in places for each in node["fields"]):
        return node
    fields = [{**each, "type": _order_like(each["type"], places[each["name"]][1])} for each in node["fields"]]
    return {**node, "fields": sorted(fields, key=lambda each: places[each["name"]][0])}


def check_protected(config: TableConfig, before: pa.Schema, after: pa.Schema) -> None:
    """Refuse other types for columns that determine keys, partition paths or the order of versions.

    Raises:
        InvalidQueryError: names the column and both types.
    """
    for names, allowed in (
        ((*config.record_key_fields, *config.partition_fields), _has_same_text),
        (config.merge_ordering_fields, _has_same_order),
    ):
        for name in names:
            if find_field_type(after, name) is None and find_field_type(before, name) is not None:
                raise InvalidQueryError(
                    f"The rows lack the column {name!r}, which keys, partition paths or the order of versions are "
                    "made of.",
                    column=name,
                )
            old, new = find_field_type(before, name), find_field_type(after, name)
            if old is not None and new is not None and not old.equals(new) and not allowed(old, new):
                raise InvalidQueryError(
                    f"The column {name!r} cannot change its type from {old} to {new}: keys, partition paths or the "
                    "order of versions are made of it.",
                    hint=f"Cast the column to {old} before it is written.",
                    column=name,
                )


def _has_same_text(old: pa.DataType, new: pa.DataType) -> bool:
    return bool(pa.types.is_integer(old) and (pa.types.is_integer(new) or pa.types.is_string(new)))


def _has_same_order(old: pa.DataType, new: pa.DataType) -> bool:
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_type(old) for is_type in numeric) and any(is_type(new) for is_type in numeric)


def _evolve_record(
    record: dict[str, Any], fields: pa.Schema | pa.StructType, outer: str, path: str, growth: Growth
) -> dict[str, Any]:
    full_name = record["name"] if "." in record["name"] else f"{record.get('namespace', outer)}.{record['name']}"
    found = {each["name"]: each for each in record["fields"]}
    given = {field.name for field in fields}
    if growth.drop_missing:
        found = {name: field for name, field in found.items() if name in given}
    elif growth.fill_missing:
        found = {name: field if name in given else _relax(field) for name, field in found.items()}
    by_case = {fold_case(name): name for name in found}
    for field in fields:
        place = f"{path}{field.name}"
        known = found.get(field.name)
        if known is not None:
            grown = _evolve_type(known["type"], field, full_name, place, growth)
            found[field.name] = {**known, "type": grown}
        elif fold_case(field.name) in by_case:
            raise InvalidQueryError(
                f"The rows have the column {place!r}, the table {by_case[fold_case(field.name)]!r}.",
                hint="Spark cannot tell them apart; write the name as the table does.",
                column=place,
            )
        elif not pa.types.is_null(field.type):
            found[field.name] = make_field(field.with_nullable(True), full_name, top=not path)
            by_case[fold_case(field.name)] = field.name
    return {**record, "fields": list(found.values())}


def _relax(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field that may be null; unchanged if it has a default or may be null already."""
    if isinstance(field["type"], list) or "default" in field:
        return field
    return {**field, "type": ["null", field["type"]], "default": None}


def _evolve_type(node: Any, field: pa.Field, outer: str, path: str, growth: Growth) -> Any:
    """Return an Avro type, extended by a field of rows."""
    type_ = field.type
    if isinstance(node, list):
        members = [each for each in node if each != "null"]
        if len(members) != 1:
            return node
        grown = _evolve_type(members[0], field, outer, path, growth)
        return ["null" if each == "null" else grown for each in node]
    if pa.types.is_struct(type_) and isinstance(node, str):
        raise UnsupportedFeatureError("Writing structs whose Avro schema is defined elsewhere by name.", column=path)
    if isinstance(node, dict) and node.get("logicalType") in RECORD_TYPES:
        return node
    kind = node.get("type") if isinstance(node, dict) else node
    if kind == "record":
        if not pa.types.is_struct(type_):
            return node
        return _evolve_record(node, type_, outer, f"{path}.", growth)
    if kind == "array":
        if not is_any_list(type_):
            return node
        inner = type_.value_field.with_name(field.name)
        grown = _evolve_type(node["items"], inner, outer, f"{path}.element", growth)
        return {**node, "items": grown}
    if kind == "map":
        if not pa.types.is_map(type_):
            return node
        inner = type_.item_field.with_name(field.name)
        grown = _evolve_type(node["values"], inner, outer, f"{path}.value", growth)
        return {**node, "values": grown}
    return _widen(node, field, outer)


def is_widened(known: pa.DataType, rows: pa.DataType, *, with_loss: bool) -> bool:
    """Whether a column of type ``known`` gets the type of the rows. Both are neither nested nor decimals.

    ``with_loss``: even if values may lose something.
    """
    old, new = (_make_plain(pa.field("x", each), "hoodie") for each in (known, rows))
    if not isinstance(old, str) or new not in _WIDER.get(old, ()):
        return False
    return with_loss or not may_lose(old, str(new))


def _widen(node: Any, field: pa.Field, namespace: str) -> Any:
    """Return the type of rows if it is wider than an Avro type that is not nested, else that type."""
    if isinstance(node, str):
        wider = _WIDER.get(node, ())
        found = _make_plain(field, namespace) if wider else None
        return found if isinstance(found, str) and found in wider else node
    if node.get("logicalType") == "decimal" and pa.types.is_decimal(field.type):
        scale, whole = node.get("scale", 0), node["precision"] - node.get("scale", 0)
        new_scale, new_whole = field.type.scale, field.type.precision - field.type.scale
        if (scale, whole) != (new_scale, new_whole) and new_scale >= scale and new_whole >= whole:
            return _make_plain(field, namespace) or node
    return node


def _make_plain(field: pa.Field, namespace: str) -> Any:
    """Return the Avro type of a field of rows that is not nested; None if Hudi's tables do not support it."""
    if pa.types.is_nested(field.type) or pa.types.is_null(field.type):
        return None
    try:
        return make_field(pa.field(field.name, field.type, nullable=False), namespace)["type"]
    except UnsupportedFeatureError:
        return None
