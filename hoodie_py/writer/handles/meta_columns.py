"""Put Hudi's meta columns in front of the data columns of a file's rows (Hudi ``HoodieRecord``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks, repeat_value
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats import names as file_names
from hoodie_py.writer.records import WriteRecords

_BATCH_ROWS = 65_536
_BATCH_BYTES = 64 * 1024 * 1024
_LAST_DIGITS = np.frombuffer("".join(f"{each:03d}" for each in range(1000)).encode(), np.uint8).reshape(1000, 3)


@dataclass(frozen=True, slots=True)
class RowStamp:
    """The values of the meta columns of one file's new rows, without their keys.

    ``index`` is the task's number, which makes sequence numbers unique between files. ``file_name`` is the file id in a
    log file.
    """

    instant: str
    index: int
    partition_path: str
    file_name: str

    def make_sequence_numbers(self, first: int, count: int) -> pa.Array:
        """Make the sequence numbers of rows: instant, task, and the row's number in the file."""
        return _join_numbers(f"{self.instant}_{self.index}_".encode(), first, first + count)

    def make_columns(self, keys: pa.Array, first: int) -> dict[str, pa.Array]:
        """Make the meta columns of rows with these keys. ``first`` is the number of the first row in the file."""
        return {**self.make_constant_columns(len(keys)), **self.make_row_columns(keys, first)}

    def make_row_columns(self, keys: pa.Array, first: int) -> dict[str, pa.Array]:
        """Make the meta columns that differ between rows."""
        return {
            file_names.COMMIT_SEQNO_FIELD: self.make_sequence_numbers(first, len(keys)),
            file_names.RECORD_KEY_FIELD: keys,
        }

    def make_constant_columns(self, count: int) -> dict[str, pa.Array]:
        """Make the meta columns that are the same in all rows."""
        return {
            file_names.COMMIT_TIME_FIELD: repeat_value(self.instant, pa.string(), count),
            file_names.PARTITION_PATH_FIELD: repeat_value(self.partition_path, pa.string(), count),
            file_names.FILE_NAME_FIELD: repeat_value(self.file_name, pa.string(), count),
        }


def make_file_batches(
    records: WriteRecords, schema: pa.Schema, stamp: RowStamp, first: int = 0, most_bytes: int = _BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield records as rows of a file, in batches.

    ``first``: the number of the first row in the file. ``most_bytes``: the limit for a batch, unless one row exceeds
    it.

    Raises:
        InvalidTableError: the records lack a column.
    """
    missing = find_missing_columns(records, schema)
    if missing:
        raise InvalidTableError("The rows to write lack a column of the table.", column=missing[0])
    row_bytes = records.rows.nbytes // max(1, len(records)) + 1
    at_once = max(1, min(_BATCH_ROWS, min(_BATCH_BYTES, most_bytes) // row_bytes))
    constants = stamp.make_constant_columns(min(at_once, len(records)))
    for start in range(0, len(records), at_once):
        count = min(at_once, len(records) - start)
        rows = records.rows.slice(start, count)
        own = stamp.make_row_columns(join_chunks(records.keys.slice(start, count)), first + start)
        meta = {**own, **{name: column.slice(0, count) for name, column in constants.items()}}
        columns = [_pick_column(meta, rows, field, count) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))


def add_empty_columns(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Put empty meta columns in front of the rows of a table without meta fields: its files contain them."""
    if not names:
        return batch
    nulls = [pa.nulls(batch.num_rows, pa.string()) for _ in names]
    return pa.RecordBatch.from_arrays([*nulls, *batch.columns], names=[*names, *batch.schema.names])


def find_missing_columns(records: WriteRecords, schema: pa.Schema) -> list[str]:
    """Return the data columns of a file that the records lack. Deletes by key have few columns."""
    there = {*file_names.META_FIELDS, file_names.OPERATION_FIELD, *records.rows.schema.names}
    return [name for name in schema.names if name not in there]


def set_meta_columns(rows: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Return rows with other values in some meta columns. Columns that the rows lack are skipped."""
    for name, values in columns.items():
        at = rows.schema.get_field_index(name)
        if at >= 0:
            rows = rows.set_column(at, name, values)
    return rows


def _join_numbers(prefix: bytes, first: int, end: int) -> pa.Array:
    """Return the texts of a prefix with each number of a range, which is not negative.

    Texts of one length are the rows of an array of bytes, where a thousand rows differ in their last digits only. This
    takes a fifth of the time of a cast to text and a join.
    """
    pieces = []
    while first < end:
        digits = len(str(first))
        stop = min(end, 10**digits)
        texts = np.empty((stop - first, len(prefix) + digits), np.uint8)
        for thousand in range(first - first % 1000, stop, 1000):
            start = max(first, thousand)
            head = prefix + (b"%d" % (thousand // 1000) if digits > 3 else b"")
            rows = texts[start - first : thousand + 1000 - first]
            rows[:, : len(head)] = np.frombuffer(head, np.uint8)
            rows[:, len(head) :] = _LAST_DIGITS[start - thousand :, -min(digits, 3) :][: len(rows)]
        offsets = np.arange(stop - first + 1, dtype=np.int32) * np.int32(texts.shape[1])
        pieces.append(pa.StringArray.from_buffers(stop - first, pa.py_buffer(offsets), pa.py_buffer(texts)))
        first = stop
    return pa.concat_arrays(pieces) if pieces else pa.array([], pa.string())


def _pick_column(meta: dict[str, pa.Array], rows: pa.Table, field: pa.Field, count: int) -> pa.Array:
    if field.name in meta:
        return meta[field.name]
    if field.name == file_names.OPERATION_FIELD and field.name not in rows.schema.names:
        return pa.nulls(count, field.type)
    return join_chunks(rows.column(field.name))
