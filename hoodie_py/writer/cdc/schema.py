"""The schema of change records, by the table's supplemental logging mode (Hudi ``HoodieCDCUtils``).

    OP_KEY_ONLY         op, record_key
    DATA_BEFORE         op, record_key, before
    DATA_BEFORE_AFTER   op, ts_ms, before, after

``op`` is i, u or d. ``ts_ms`` is the request time of the commit. ``before`` and ``after`` are rows of the table without
meta columns. The second image refers to the first one's record by name, as an Avro schema defines a name once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.config.table_config import CDC_MODES
from hoodie_py.formats.names import AFTER, BEFORE, KEY, OP, TIME

_KEY_ONLY, _WITH_BEFORE, _WITH_BOTH = CDC_MODES
_NAMES = {_KEY_ONLY: (OP, KEY), _WITH_BEFORE: (OP, KEY, BEFORE), _WITH_BOTH: (OP, TIME, BEFORE, AFTER)}


@dataclass(frozen=True, slots=True)
class ChangeSchema:
    """The schema of a table's change records, in Avro and in Arrow. ``image`` names the columns of an image."""

    avro: AvroSchema
    arrow: pa.Schema
    image: tuple[str, ...]

    @classmethod
    def of(cls, mode: str, table: str) -> ChangeSchema:
        """Make the schema of a mode. ``table`` is the Avro schema (JSON) of the table's rows without meta columns.

        Raises:
            CorruptFileError: the table's schema cannot be part of another one.
            UnsupportedFeatureError: a type of the table's schema is not handled.
        """
        columns, record = _NAMES[mode], json.loads(table)
        text = json.dumps(_make_record(columns, record), separators=(",", ":"), ensure_ascii=False)
        avro = AvroSchema.parse(text)
        arrow = pa.schema([pa.field(column.name, _allow_nulls(column.type)) for column in avro.arrow])
        return cls(avro, arrow, tuple(each["name"] for each in record["fields"]))


def _make_record(columns: tuple[str, ...], table: dict[str, Any]) -> dict[str, Any]:
    fields: list[dict[str, Any]]
    if BEFORE not in columns:
        fields = [{"name": name, "type": ["string", "null"]} for name in columns]
        return {"type": "record", "name": "Record", "fields": fields}
    namespace, name = _split_name(table)
    image: Any = {key: value for key, value in {**table, "name": name}.items() if key != "namespace"}
    types: dict[str, Any] = {BEFORE: image, AFTER: name}
    fields = [
        {"name": each, "type": ["null", types.get(each, "string")], "doc": "", "default": None} for each in columns
    ]
    known = {} if namespace is None else {"namespace": namespace}
    return {"type": "record", "name": "CDC", **known, "doc": "", "fields": fields}


def _split_name(record: dict[str, Any]) -> tuple[str | None, str]:
    """Return the namespace and the name of an Avro record."""
    space, dot, name = str(record["name"]).rpartition(".")
    return (space if dot else record.get("namespace")) or None, name


def _allow_nulls(type_: pa.DataType) -> pa.DataType:
    """Return an image's type with nullable columns: in a missing image all columns are null."""
    return pa.struct([column.with_nullable(True) for column in type_]) if pa.types.is_struct(type_) else type_
