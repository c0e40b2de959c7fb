"""Merge cases: one JSON object a line, each a call with its configuration, its input and what Java Hudi 1.2.0 answers.

``python_expected`` stands where Java's answer is a defect. ``expected`` is a subset: what it does not list is not
compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.deletes.decoder import DeleteRecords, OrderingKind

_KINDS = {
    "int": OrderingKind.INT,
    "long": OrderingKind.LONG,
    "float": OrderingKind.FLOAT,
    "double": OrderingKind.DOUBLE,
    "string": OrderingKind.STRING,
    "decimal": OrderingKind.DECIMAL,
    "boolean": OrderingKind.BOOLEAN,
    "bytes": OrderingKind.BYTES,
    "array": OrderingKind.ARRAY,
}
_ARROW = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "bytes": pa.binary(),
}


@dataclass(frozen=True)
class Case:
    """One line of a case file."""

    fields: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def api(self) -> str:
        return str(self.fields["api"])

    @property
    def config(self) -> Mapping[str, Any]:
        return self.fields.get("config") or {}

    @property
    def expected(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.fields.get("python_expected") or self.fields["expected"]
        return found

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        return tuple(self.config.get("ordering_fields") or ())

    def schema(self, role: str | None = None) -> AvroSchema:
        """The schema of a role (older, newer, reader, table, requested), the case's own where the role has none."""
        found = (self.fields.get(f"{role}_schema") if role else None) or self.fields["schema"]
        return AvroSchema.parse(json.dumps(found))

    def __str__(self) -> str:
        return json.dumps(self.fields, indent=1)


def load_cases(path: Path) -> list[Case]:
    """Read a case file; every line must be a case with an id of its own."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    cases = [Case(json.loads(line)) for line in lines]
    assert cases, f"{path} holds no case"
    assert len({case.id for case in cases}) == len(cases), f"{path} holds two cases of one id"
    return cases


def column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Build a column from JSON data; decimals may come as numbers or text."""
    return pa.array([_fitting(plain(value), type_) for value in values], type_)


def row(data: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """JSON data as Python values that fit a schema; columns that the schema does not have stay as they are."""
    known = set(schema.names)
    return {k: _fitting(plain(v), schema.field(k).type) if k in known else plain(v) for k, v in data.items()}


def _fitting(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(type_):
        return Decimal(str(value))
    if pa.types.is_struct(type_):
        return {name: _fitting(inner, type_.field(name).type) for name, inner in value.items()}
    if pa.types.is_list(type_):
        return [_fitting(inner, type_.value_type) for inner in value]
    if pa.types.is_map(type_):
        return [(key, _fitting(inner, type_.item_type)) for key, inner in dict(value).items()]
    return value


def plain(value: Any) -> Any:
    """Turn JSON data into Python values: ``{"$bytes": text}`` is binary."""
    if isinstance(value, dict):
        if set(value) == {"$bytes"}:
            return str(value["$bytes"]).encode()
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def typed(literal: Mapping[str, Any] | None) -> tuple[OrderingKind, Any]:
    """Turn an ordering literal into a delete block's (kind, value); the int 0 and null mean "no ordering"."""
    if literal is None or (literal["t"] == "int" and literal["v"] == 0):
        return OrderingKind.NONE, None
    kind, value = _KINDS[literal["t"]], literal["v"]
    if kind is OrderingKind.ARRAY:
        return kind, tuple(typed(part) for part in value)
    if kind is OrderingKind.FLOAT:
        return kind, float(np.float32(value))
    if kind is OrderingKind.DECIMAL:
        return kind, Decimal(str(value))
    if kind is OrderingKind.BYTES:
        return kind, plain(value) if isinstance(value, dict) else str(value).encode()
    return kind, value


def arrow_type(literal: Mapping[str, Any] | None) -> pa.DataType | None:
    """The column type that an ordering literal comes from; None where it says nothing (no ordering, several fields)."""
    if typed(literal)[0] is OrderingKind.NONE:
        return None
    assert literal is not None
    return _ARROW.get(literal["t"])


def delete_records(entries: list[Mapping[str, Any]]) -> DeleteRecords:
    """What a delete block of these entries decodes to."""
    orderings = [typed(entry.get("ordering")) for entry in entries]
    keys = pa.array([entry["key"] for entry in entries], pa.string())
    return DeleteRecords(keys, np.array([kind for kind, _ in orderings], np.int8), [value for _, value in orderings])
