"""Add the columns that rows bring and a table lacks to the table's schema, at every depth.

New columns come last and are nullable, so that older files read as null. A write makes no other change to the schema
(Hudi ``AvroSchemaEvolutionUtils``, schema evolution on write). The stored Avro schema of the other columns is kept.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro_from_arrow import is_any_list, make_field
from hoodie_py.formats.column_names import fold_case


def evolve_schema(text: str, columns: pa.Schema) -> str:
    """Return a table's Avro schema (JSON) with the new columns; the same text if there are none.

    Args:
        text: the table's, without meta columns.
        columns: of the rows, without meta columns.

    Raises:
        InvalidQueryError: Avro does not allow a name, or it differs from another in case only.
        UnsupportedFeatureError: Hudi's tables do not have a type, or a struct's schema is defined elsewhere by name.
    """
    record = json.loads(text)
    grown = _evolve_record(record, columns, record.get("namespace", ""), "")
    return text if grown == record else json.dumps(grown, separators=(",", ":"), ensure_ascii=False)


def _evolve_record(record: dict[str, Any], fields: pa.Schema | pa.StructType, outer: str, path: str) -> dict[str, Any]:
    full_name = record["name"] if "." in record["name"] else f"{record.get('namespace', outer)}.{record['name']}"
    found = {each["name"]: each for each in record["fields"]}
    by_case = {fold_case(name): name for name in found}
    for field in fields:
        place = f"{path}{field.name}"
        known = found.get(field.name)
        if known is not None:
            found[field.name] = {**known, "type": _evolve_type(known["type"], field.type, full_name, place)}
        elif fold_case(field.name) in by_case:
            raise InvalidQueryError(
                f"The rows have the column {place!r}, the table {by_case[fold_case(field.name)]!r}.",
                hint="Spark cannot tell them apart; write the name as the table does.",
                column=place,
            )
        elif not pa.types.is_null(field.type):
            found[field.name] = make_field(field.with_nullable(True), full_name)
            by_case[fold_case(field.name)] = field.name
    return {**record, "fields": list(found.values())}


def _evolve_type(node: Any, type_: pa.DataType, outer: str, path: str) -> Any:
    if isinstance(node, list):
        members = [each for each in node if each != "null"]
        if len(members) != 1:
            return node
        grown = _evolve_type(members[0], type_, outer, path)
        return ["null" if each == "null" else grown for each in node]
    if pa.types.is_struct(type_) and isinstance(node, str):
        raise UnsupportedFeatureError("Writing structs whose Avro schema is defined elsewhere by name.", column=path)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if kind == "record" and pa.types.is_struct(type_):
        return _evolve_record(node, type_, outer, f"{path}.")
    if kind == "array" and is_any_list(type_):
        return {**node, "items": _evolve_type(node["items"], type_.value_type, outer, f"{path}.element")}
    if kind == "map" and pa.types.is_map(type_):
        return {**node, "values": _evolve_type(node["values"], type_.item_type, outer, f"{path}.value")}
    return node
