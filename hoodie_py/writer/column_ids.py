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
from hoodie_py.formats.avro.columns import (
    Column,
    InternalSchema,
    Numbers,
    Plain,
    Struct,
    join_columns,
    make_avro_fields,
    number_columns,
    parse_internal_schema,
    read_avro_fields,
    write_internal_schema,
)
from hoodie_py.formats.avro.schema import write_in_full
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
        columns = read_avro_fields(self._record["fields"])
        if schema.latest is None:
            self.numbers = Numbers(-1)
            meta = [] if schema.empty else [Column(name, Plain("string"), doc="") for name in META_FIELDS]
            self.columns = number_columns([*meta, *columns], self.numbers)
            self.first = write_internal_schema(InternalSchema(0, Struct(self.columns), self.numbers.last))
            return
        with locate_errors(instant=None):
            known = parse_internal_schema(schema.latest)
        self.numbers = Numbers(known.max_id)
        data = [each for each in known.record.columns if each.name not in NOT_DATA]
        meta = [replace(each, type=Plain("string")) for each in known.record.columns if each.name in NOT_DATA]
        self.columns = (*meta, *join_columns(columns, data))

    def follow(self, grown: OutputSchema) -> OutputSchema:
        """Return a schema that extends the table's, with ids for the new columns."""
        fields = read_avro_fields(write_in_full(json.loads(grown.table))["fields"])
        meta = [each for each in self.columns if each.name in NOT_DATA]
        return self._finish(grown, (*meta, *join_columns(fields, self.columns, self.numbers)))

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
        version = InternalSchema(0, Struct(tuple(columns)), self.numbers.last)
        return replace(schema, latest=known.latest, base=known.base, version=version, first=self.first)


def _to_json(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)
