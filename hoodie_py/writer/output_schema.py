"""Make the schema of new data files: the schema of the table's newest commit, plus the meta columns.

Rows are read in the types of files, not of queries: a partition column keeps the value that it had before a key
generator formatted it, and columns that files leave out stay out.

Rows of a scan have all five meta columns and may be written again: the meta columns are ignored, as in Java Hudi. A
single column with such a name, or with another type, is the caller's own column. It would be lost, so it is refused;
Java drops it. Inside a struct the names are allowed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.fields import is_text
from hoodie_py.errors import CorruptFileError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.columns import InternalSchema, write_internal_schema
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.schema import name_repeated, write_in_full
from hoodie_py.formats.column_names import fold_case
from hoodie_py.formats.names import META_FIELDS, OPERATION_FIELD
from hoodie_py.formats.timeline.commit_metadata import LATEST_SCHEMA_KEY, SCHEMA_KEY
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.schema_changes import SchemaChange

NOT_DATA = (*META_FIELDS, OPERATION_FIELD)
_RESERVED = {fold_case(name): name for name in NOT_DATA}


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The schema of new data files.

    Attributes:
        arrow: the columns of rows, meta columns first.
        avro: the Avro schema (JSON) of a row in a file, meta columns first.
        table: the Avro schema (JSON) without meta columns, as commits record it; the stored text if nothing changed.
        defaults: values other than null for rows of files that lack the column.
        empty: meta columns that files contain and rows do not: in tables without meta fields they are null in every
            row.
        latest: the table's schema with ids (JSON), which every commit repeats; None without schema-on-read.
        base: the Avro schema (JSON) of the table that this schema was made from; None without one.
        version: a new schema with ids, which the write records under its own instant; None to repeat ``latest``.
        first: the schema with ids (JSON) before the first alteration, if ``version`` is the first one.
        changes: the changes that the rows of the write make to the table's schema.
    """

    arrow: pa.Schema
    avro: str
    table: str
    defaults: dict[str, Any] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    latest: str | None = None
    base: str | None = None
    version: InternalSchema | None = None
    first: str | None = None
    changes: tuple[SchemaChange, ...] = ()

    @property
    def has_ids(self) -> bool:
        """Whether commits with this schema record a schema with ids."""
        return self.latest is not None or self.version is not None

    @property
    def commit_texts(self) -> dict[str, str]:
        """The schema entries in the extra metadata of a commit that changes no column ids."""
        texts = {SCHEMA_KEY: self.table}
        return texts if self.latest is None else {**texts, LATEST_SCHEMA_KEY: self.latest}

    def make_commit_texts(self, instant: str) -> dict[str, str]:
        """Return the schema entries in the extra metadata of an instant's commit."""
        latest = self.make_latest(instant)
        return self.commit_texts if latest is None else {SCHEMA_KEY: self.table, LATEST_SCHEMA_KEY: latest}

    def make_latest(self, instant: str) -> str | None:
        """Return the schema with ids (JSON) that the commit of an instant records; None without schema-on-read."""
        if self.version is None:
            return self.latest
        return write_internal_schema(replace(self.version, version=int(instant)))


def load_output_schema(snapshot: Snapshot) -> OutputSchema:
    """Load the schema for new files of a table.

    Raises:
        UnsupportedFeatureError: no commit records a schema, or something in it is not handled.
        CorruptFileError: the recorded schema is no Avro record.
    """
    stored = snapshot.schema.text
    if stored is None:
        raise UnsupportedFeatureError(
            "Writing to a table whose commits record no schema.", table=snapshot.config.name, instant=snapshot.instant
        )
    meta = [name for name in snapshot.schema.arrow.names if name in NOT_DATA]
    empty = () if snapshot.config.populate_meta_fields else META_FIELDS
    found = parse_output_schema(stored, meta, empty, instant=snapshot.schema.instant)
    return replace(found, latest=snapshot.schema.latest_schema, base=stored)


def parse_output_schema(
    stored: str, meta: Sequence[str], empty: Sequence[str] = (), *, instant: str | None = None
) -> OutputSchema:
    """Make the schema of files from a table's Avro schema (JSON), which may contain meta columns.

    ``meta``: the meta columns that rows have. ``empty``: the meta columns that only files have. ``instant``: the write
    that recorded the schema, for errors.

    Raises:
        CorruptFileError: the schema is no Avro record.
    """
    record = json.loads(stored)
    if not isinstance(record, dict) or not isinstance(record.get("fields"), list):
        raise CorruptFileError("The table's schema is no Avro record.", instant=instant)
    fields = record["fields"]
    data = [each for each in fields if each.get("name") not in NOT_DATA]
    table = stored if len(data) == len(fields) else _to_json({**record, "fields": data})
    avro = _to_json({**record, "fields": [*map(_make_meta_field, (*empty, *meta)), *data]})
    parsed = AvroSchema.parse(avro)
    arrow = pa.schema([each for each in parsed.arrow if each.name not in empty])
    return OutputSchema(arrow, avro, table, dict(parsed.defaults), tuple(empty))


def select_output_columns(schema: OutputSchema, names: Sequence[str]) -> OutputSchema:
    """Return the schema of log blocks with only some columns and the meta columns, in the table's order."""
    record = write_in_full(json.loads(schema.avro))
    kept = [each for each in record["fields"] if each["name"] in META_FIELDS or each["name"] in names]
    arrow = pa.schema([each for each in schema.arrow if each.name in META_FIELDS or each.name in names])
    avro = _to_json(name_repeated({**record, "fields": kept}))
    return replace(schema, arrow=arrow, avro=avro)


def _make_meta_field(name: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "string"], "doc": "", "default": None}


def _to_json(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def select_data_columns(schema: pa.Schema) -> pa.Schema:
    """Return a schema without meta columns."""
    return pa.schema([column for column in schema if column.name not in NOT_DATA])


def select_user_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns that a caller gave, without meta columns.

    ``_hoodie_operation`` marks what each row does, so it may come without the other meta columns.

    Raises:
        InvalidQueryError: a column has the name of a meta column but is not one.
    """
    scanned = set(META_FIELDS) <= set(schema.names)
    for column in schema:
        name = _RESERVED.get(fold_case(column.name))
        if name is None or (name == column.name and _may_be_text(column.type) and (scanned or name == OPERATION_FIELD)):
            continue
        raise InvalidQueryError(
            f"The column {column.name!r} has the name of a meta column, which Hudi writes itself.",
            hint="Rename it. Rows of a scan bring all five meta columns, which count for nothing.",
            column=column.name,
        )
    return select_data_columns(schema)


def _may_be_text(type_: pa.DataType) -> bool:
    kind = type_.value_type if pa.types.is_dictionary(type_) else type_
    return is_text(kind) or bool(pa.types.is_null(kind))
