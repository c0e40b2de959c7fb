"""Make the change records of a write, and write them as the blocks of one change-data log file.

The schema of change records depends on the table's supplemental logging mode (Hudi ``HoodieCDCUtils``):

    OP_KEY_ONLY         op, record_key
    DATA_BEFORE         op, record_key, before
    DATA_BEFORE_AFTER   op, ts_ms, before, after

``op`` is i, u or d. ``ts_ms`` is the request time of the commit. ``before`` and ``after`` are rows of the table without
meta columns.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, join_batches, make_empty_batch, repeat_value, take
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.encoder import encode_records
from hoodie_py.formats.config.table_config import CDC_MODES
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.names import AFTER, BEFORE, KEY, OP, TIME
from hoodie_py.reader.base.base_merge import MergedRecords
from hoodie_py.reader.record.row_store import NO_ROW, RowStore

_BLOCK_ROWS = 65_536
_BLOCK_BYTES = 16 * 1024 * 1024

_KEY_ONLY, _WITH_BEFORE, _WITH_BOTH = CDC_MODES
_NAMES = {_KEY_ONLY: (OP, KEY), _WITH_BEFORE: (OP, KEY, BEFORE), _WITH_BOTH: (OP, TIME, BEFORE, AFTER)}

_INSERT, _UPDATE, _DELETE = "i", "u", "d"


class ChangeLog:
    """Encodes change records into a sink. ``instant`` is the request time of the commit.

    A block is encoded as soon as it has enough rows or bytes, so memory stays bounded (Hudi ``HoodieCDCLogger``,
    ``HoodieCDCDataBlock``).
    """

    def __init__(self, sink: IO[bytes], schema: ChangeSchema, instant: str) -> None:
        self._sink = sink
        self._schema = schema
        self._instant = instant
        self._held: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._blocks = 0

    def add(self, merged: MergedRecords, store: RowStore) -> None:
        """Add the changes of a piece of a merge. The store holds its rows.

        Raises:
            InvalidTableError: a value does not fit the table's schema.
            StorageError: the disk is full or fails.
        """
        records = make_change_records(merged, store, self._schema, self._instant)
        row_bytes = records.nbytes // max(1, records.num_rows) + 1
        at_once = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
        for start in range(0, records.num_rows, at_once):
            part = records.slice(start, at_once)
            rows, size = part.num_rows, part.num_rows * row_bytes
            if self._held and (self._rows + rows > _BLOCK_ROWS or self._bytes + size > _BLOCK_BYTES):
                self._write_block()
            self._held.append(part)
            self._rows += rows
            self._bytes += size

    def finish(self) -> None:
        """Write what is held; always write at least one block."""
        # A block without records, if nothing changed: readers of changes treat a missing file as an error.
        if self._held or not self._blocks:
            self._write_block()

    def _write_block(self) -> None:
        records = join_batches(self._held) if self._held else make_empty_batch(self._schema.arrow)
        avro = self._schema.avro
        headers = {HeaderKey.INSTANT_TIME: self._instant, HeaderKey.SCHEMA: avro.text}
        self._sink.write(encode_block(BlockType.CDC_DATA, headers, encode_records(records, avro)))
        self._held, self._rows, self._bytes = [], 0, 0
        self._blocks += 1


@dataclass(frozen=True, slots=True)
class ChangeSchema:
    """The schema of a table's change records, in Avro and in Arrow. ``image`` names the columns of an image.

    The second image refers to the first one's record by name, as an Avro schema defines a name once.
    """

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


@dataclass(frozen=True, slots=True)
class _Changes:
    """Some changes. ``before`` and ``after`` are handles of rows, -1 without a row."""

    op: pa.Array
    keys: pa.Array
    before: np.ndarray
    after: np.ndarray


def make_change_records(merged: MergedRecords, store: RowStore, schema: ChangeSchema, instant: str) -> pa.RecordBatch:
    """Return the change records of a piece of a merge. ``store`` holds its rows; ``instant`` is the commit's.

    A new record is an insert, a changed base row an update, a deleted base row a delete (Hudi ``HoodieCDCLogger``). A
    record that left its base row unchanged is no change. Nor is a delete without a base row: no reader has seen such a
    row.
    """
    changes = _find_changes(merged)
    count = len(changes.keys)
    arrays = []
    for field in schema.arrow:
        if field.name == OP:
            arrays.append(changes.op)
        elif field.name == KEY:
            arrays.append(changes.keys)
        elif field.name == TIME:
            arrays.append(repeat_value(instant, pa.string(), count))
        else:
            rows = {BEFORE: changes.before, AFTER: changes.after}[field.name]
            arrays.append(_make_images(rows, store, schema.image, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def _find_changes(merged: MergedRecords) -> _Changes:
    deletes = merged.result.deletes
    at = np.flatnonzero(~deletes if merged.older is None else merged.changes)
    result = merged.result.take(at)
    if merged.older is None:
        return _Changes(_name_all(_INSERT, len(at)), result.keys, np.full(len(at), NO_ROW), result.rows)
    gone = deletes[at]
    names = pa.array([_UPDATE, _DELETE], pa.string())
    op = take(names, from_numpy(gone.astype(np.int64)))
    return _Changes(op, result.keys, merged.older.rows[at], np.where(gone, NO_ROW, result.rows))


def _name_all(op: str, count: int) -> pa.Array:
    return repeat_value(op, pa.string(), count)


def _make_images(rows: np.ndarray, store: RowStore, names: tuple[str, ...], type_: pa.DataType) -> pa.Array:
    """Gather rows as values of a struct column, null where there is no row."""
    missing = rows == NO_ROW
    if missing.all():
        return pa.nulls(len(rows), type_)
    columns = store.take(rows, names).columns
    mask = from_numpy(missing) if missing.any() else None
    return pa.StructArray.from_arrays(columns, fields=list(type_), mask=mask)
