"""Payload classes for change data: AWS DMS, and Debezium from MySQL and PostgreSQL.

They agree with Hudi's AWSDmsAvroPayload, MySqlDebeziumAvroPayload and PostgresDebeziumAvroPayload. An operation column
marks deletes, in upper or lower case. The Debezium classes order versions by their position in the source database's
log.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import to_booleans
from hoodie_py.errors import MergeError
from hoodie_py.options.read import UNAVAILABLE_VALUE
from hoodie_py.reader.payloads.merger import CombineResult, PayloadMerger, Props
from hoodie_py.reader.payloads.ordering import (
    Record,
    find_text,
    has_text,
    is_bytes,
    make_merged_record,
    replace_records,
)
from hoodie_py.reader.payloads.overwrite import OrderingPreCombinePayload, OverwriteWithLatestAvroPayload, fill_columns
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.row_store import NO_ROW

_DEBEZIUM = "org.apache.hudi.common.model.debezium"
_DEBEZIUM_OPERATION = "_change_operation_type"
_LSN, _SEQUENCE = "_event_lsn", "_event_seq"
_FILE_AND_POSITION = r"^(?P<file>-?0*[0-9]{1,18})\.(?P<pos>-?0*[0-9]{1,18})(?:\.|$)"  # longs


class ChangeDataPayload(PayloadMerger):
    """A version is also a delete if the operation column has a certain text, in upper or lower case."""

    delete_mark: ClassVar[tuple[str, str]]  # the operation column, and its text

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        if super().is_deleted(record, context, props):
            return True
        return has_text(record, context, *self.delete_mark, ignore_case=True)

    def find_deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        marked = find_text(batch, *self.delete_mark, ignore_case=True)
        return np.asarray(super().find_deleted(batch, props) | marked)


class AWSDmsAvroPayload(ChangeDataPayload, OrderingPreCombinePayload, OverwriteWithLatestAvroPayload):
    """The newer version; a delete where ``Op`` is D."""

    payload_classes = ("org.apache.hudi.common.model.AWSDmsAvroPayload",)
    columns = ("Op",)
    delete_mark = ("Op", "D")


class DebeziumAvroPayload(ChangeDataPayload):
    """The later log position wins, the newer version on a tie; the operation type d is a delete.

    An older version without a log position (loaded before change capture began) loses.
    """

    delete_mark = (_DEBEZIUM_OPERATION, "d")
    position: ClassVar[str]  # the column with the position in the source's log

    @abstractmethod
    def older_is_later(self, older: Any, newer: Any, key: str) -> bool:
        """Say whether the older version has the later log position."""

    @abstractmethod
    def find_later(self, older: pa.Array, newer: pa.Array, keys: pa.Array) -> np.ndarray:
        """Return for each pair whether the older version has the later log position; null means no position."""

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        if newer.record is None:
            return None
        if self.position not in context.schema.names:
            raise self._make_missing_error(newer.record_key)
        mine, theirs = context.get_value(older, self.position), context.get_value(newer, self.position)
        if theirs is None:
            raise self._make_missing_error(newer.record_key)
        if mine is not None and self.older_is_later(mine, theirs, newer.record_key):
            return older
        return None if self.is_deleted(newer, context, props) else newer

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        keep = self._find_kept(older, newer)
        return CombineResult(newer.where(~keep, older), ~keep & self.find_deleted(newer, props))

    def _find_kept(self, older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
        """Say for each pair whether the older version wins by its log position."""
        keep = np.zeros(len(newer), bool)
        at = np.flatnonzero(newer.rows != NO_ROW)
        if not len(at):
            return keep
        if self.position not in newer.context.schema.names:
            raise self._make_missing_error(newer.keys[int(at[0])].as_py())
        mine, theirs = older.take(at).column(self.position), newer.take(at).column(self.position)
        if theirs.null_count:
            raise self._make_missing_error(newer.keys[int(at[np.argmax(np.asarray(theirs.is_null()))])].as_py())
        known = np.flatnonzero(np.asarray(mine.is_valid()))
        if not len(known):
            return keep
        both = pa.array(known)
        keep[at[known]] = self.find_later(mine.take(both), theirs.take(both), newer.keys.take(pa.array(at[known])))
        return keep

    def _make_missing_error(self, key: str) -> MergeError:
        return MergeError(f"{self.position} must not be null in a changed row.", key=key, column=self.position)


class MySqlDebeziumAvroPayload(DebeziumAvroPayload):
    """Orders by ``_event_seq``: the binlog file's number, a dot, the position in the file; both compare as integers."""

    payload_classes = (f"{_DEBEZIUM}.MySqlDebeziumAvroPayload",)
    columns = (_DEBEZIUM_OPERATION, _SEQUENCE)
    position = _SEQUENCE

    def older_is_later(self, older: Any, newer: Any, key: str) -> bool:
        mine, theirs = (pa.array([v if isinstance(v, str) else None], pa.string()) for v in (older, newer))
        return bool(self.find_later(mine, theirs, pa.array([key]))[0])

    def find_later(self, older: pa.Array, newer: pa.Array, keys: pa.Array) -> np.ndarray:
        my_file, my_place = _split_position(older, keys)
        file, place = _split_position(newer, keys)
        return np.asarray((file < my_file) | ((file == my_file) & (place < my_place)))

    def pre_combine_pair(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record:
        later = self.older_is_later(older.ordering_value, newer.ordering_value, newer.record_key)
        return older if later else newer

    def pre_combine_pairs(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> BufferedBatch:
        return newer.where(~self.find_later(older.order.to_arrow(), newer.order.to_arrow(), newer.keys), older)


class PostgresDebeziumAvroPayload(DebeziumAvroPayload):
    """Orders by ``_event_lsn``; optionally keeps the older value where Debezium could not send one.

    Debezium then sends a placeholder. The Java class replaces it in place in the newer version's row. Hudi's reader
    compares by identity, so it considers the newer version unchanged and loses the replacement: the placeholder stays
    in tables of version 6 and 8. It stays here, too, unless the option for the unavailable value names the placeholder
    (``__debezium_unavailable_value``).
    """

    payload_classes = (f"{_DEBEZIUM}.PostgresDebeziumAvroPayload",)
    columns = (_DEBEZIUM_OPERATION, _LSN)
    position = _LSN

    def older_is_later(self, older: Any, newer: Any, key: str) -> bool:
        return bool(newer < older)

    def find_later(self, older: pa.Array, newer: pa.Array, keys: pa.Array) -> np.ndarray:
        return to_booleans(pc.less(newer, older))

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        result, placeholder = super().combine(older, newer, context, props), UNAVAILABLE_VALUE.read(props)
        if result is not newer or placeholder is None:
            return result
        places = (placeholder, placeholder.encode())
        values = {
            field.name: context.get_value(older, field.name)
            for field in context.schema
            if _may_be_unavailable(field.type) and context.get_value(newer, field.name) in places
        }
        return make_merged_record(newer, values, newer.record_key, context) if values else newer

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        combined, placeholder = super().combine_batch(older, newer, props), UNAVAILABLE_VALUE.read(props)
        if placeholder is None:
            return combined
        taken = ~combined.absent & (combined.records.rows == newer.rows)
        takes: dict[str, np.ndarray] = {}
        for field in newer.context.schema:
            if _may_be_unavailable(field.type):
                unavailable = pa.scalar(placeholder.encode() if is_bytes(field.type) else placeholder, field.type)
                mask = taken & to_booleans(pc.equal(newer.column(field.name), unavailable))
                if mask.any():
                    takes[field.name] = mask
        if not takes:
            return combined
        at = np.flatnonzero(np.logical_or.reduce(list(takes.values())))
        part = fill_columns(newer.take(at), older.take(at), {name: mask[at] for name, mask in takes.items()})
        return CombineResult(replace_records(combined.records, at, part), combined.absent)


def _may_be_unavailable(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(type_) for is_kind in kinds)


def _split_position(texts: pa.Array, keys: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    if not pa.types.is_string(texts.type):
        raise _make_malformed_error(texts, keys, 0)
    parts = pc.extract_regex(texts, _FILE_AND_POSITION)
    if parts.null_count:
        raise _make_malformed_error(texts, keys, int(np.argmax(np.asarray(parts.is_null()))))
    file, place = (pc.struct_field(parts, i).cast(pa.int64()) for i in (0, 1))
    return file.to_numpy(zero_copy_only=False), place.to_numpy(zero_copy_only=False)


def _make_malformed_error(texts: pa.Array, keys: pa.Array, at: int) -> MergeError:
    return MergeError(
        f"{_SEQUENCE} must be a file number, a dot and a position, not {texts[at].as_py()!r}.",
        key=keys[at].as_py(),
        column=_SEQUENCE,
    )
