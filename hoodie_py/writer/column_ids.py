"""Make the next version of a table's schema with ids (Hudi ``InternalSchemaConverter``,
``BaseHoodieWriteClient.saveInternalSchema``).

It is made from the first Avro schema, by an alteration, or from the columns that the rows of a write add.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hoodie_py.errors import locate_errors
from hoodie_py.formats.avro.numbered_columns import (
    Column,
    Numbers,
    Plain,
    follow_columns,
    join_columns,
    list_fields,
    make_avro_fields,
    number_columns,
)
from hoodie_py.formats.avro.shared_names import write_in_full
from hoodie_py.formats.internal_schema import InternalSchema, RecordType, parse_internal_schema, write_internal_schema
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.writer.output_schema import NOT_DATA, OutputSchema, parse_output_schema


class TableColumns:
    """The columns of a table with their ids. ``first``: the first schema with ids (JSON) if the table had none.

    Raises:
        CorruptFileError: the schemas that the table records contradict each other.
        UnsupportedFeatureError: schemas with ids do not support a type.
    """

    def __init__(self, schema: OutputSchema) -> None:
        self._schema = schema
        self._record = write_in_full(json.loads(schema.table))
        self.first: str | None = None
        fields: list[dict[str, Any]] = self._record["fields"]
        if schema.latest is None:
            self.numbers = Numbers(-1)
            meta = [] if schema.empty else [_make_meta_field(name) for name in META_FIELDS]
            self.columns = number_columns([*meta, *fields], self.numbers)
            self.first = write_internal_schema(InternalSchema(0, self._list_fields(self.columns), self.numbers.last))
            return
        with locate_errors(instant=None):
            known = parse_internal_schema(schema.latest)
        self.numbers = Numbers(known.max_id)
        data = RecordType(tuple(each for each in known.record.fields if each.name not in NOT_DATA))
        meta_columns = [
            Column(each.id, each.name, Plain("string"), each.optional, each.doc)
            for each in known.record.fields
            if each.name in NOT_DATA
        ]
        self.columns = (*meta_columns, *join_columns(fields, data))

    def follow(self, grown: OutputSchema) -> OutputSchema:
        """Return a schema that extends the table's, with ids for the new columns."""
        fields = write_in_full(json.loads(grown.table))["fields"]
        meta = [each for each in self.columns if each.name in NOT_DATA]
        columns = (*meta, *follow_columns(self.columns, fields, self.numbers))
        return self._finish(grown, columns)

    def become(self, columns: Sequence[Column]) -> OutputSchema:
        """Return the schema of the table with altered columns."""
        name = str(self._record["name"])
        full_name = name if "." in name else ".".join(filter(None, [self._record.get("namespace"), name]))
        data = [each for each in columns if each.name not in NOT_DATA]
        text = _to_json({**self._record, "fields": make_avro_fields(data, full_name)})
        meta = [each for each in self._schema.arrow.names if each in NOT_DATA]
        return self._finish(parse_output_schema(text, meta, self._schema.empty), columns)

    def _finish(self, schema: OutputSchema, columns: Sequence[Column]) -> OutputSchema:
        known = self._schema
        version = InternalSchema(0, self._list_fields(columns), self.numbers.last)
        return replace(schema, latest=known.latest, base=known.base, version=version, first=self.first)

    @staticmethod
    def _list_fields(columns: Sequence[Column]) -> RecordType:
        return RecordType(list_fields(columns))


def _make_meta_field(name: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "string"], "doc": "", "default": None}


def _to_json(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)
