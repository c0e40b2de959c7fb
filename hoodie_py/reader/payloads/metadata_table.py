"""HoodieMetadataPayload: merges the records of the metadata table, each kind by its own rule.

    type   record                                 merge of an older and a newer version
    1, 2   partitions; files of a partition       ``file_lists``
    3, 6   statistics of a file or a partition    ``column_statistics``
    4      bloom filter of a file                 the newer one
    5      location of a record                   the newer one
    7      secondary key                          the newer one, also where it says that the key is deleted

All versions of a key have one type. A delete record (from a DELETE block) deletes; later versions start anew.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_numbers
from hoodie_py.errors import MergeError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import METADATA_PAYLOAD
from hoodie_py.formats.indexes.record_schema import FILES_COLUMN, STATISTICS_COLUMN
from hoodie_py.reader.payloads.column_statistics import merge_statistics
from hoodie_py.reader.payloads.file_lists import merge_file_lists
from hoodie_py.reader.payloads.merger import CombineResult, PayloadMerger, Props
from hoodie_py.reader.payloads.ordering import Record
from hoodie_py.reader.payloads.values import make_merged_record, make_merged_records, replace_records
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch

_TYPE = "type"
_COLUMN_OF_TYPE: Final = {
    1: FILES_COLUMN,
    2: FILES_COLUMN,
    3: STATISTICS_COLUMN,
    4: None,
    5: None,
    6: STATISTICS_COLUMN,
    7: None,
}
_MERGE_OF_COLUMN: Final = {FILES_COLUMN: merge_file_lists, STATISTICS_COLUMN: merge_statistics}


class HoodieMetadataPayload(PayloadMerger):
    """The versions of a record of the metadata table, merged by the record's type."""

    payload_classes = (METADATA_PAYLOAD,)
    columns = (_TYPE,)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        if self.is_deleted(newer, context, props):
            return None
        if self.is_deleted(older, context, props):
            return newer
        kind = context.get_value(newer, _TYPE)
        _check_types(np.array([context.get_value(older, _TYPE)]), np.array([kind]))
        column = _COLUMN_OF_TYPE[kind]
        if column is None or column not in context.schema.names:
            return newer
        type_ = context.schema.field(column).type
        both = (pa.array([context.get_value(each, column)], type_) for each in (older, newer))
        merged = _MERGE_OF_COLUMN[column](*both)[0].as_py()
        return make_merged_record(newer, {column: merged}, newer.record_key, context)

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        absent = self.find_deleted(newer, props)
        at = np.flatnonzero(~absent & ~self.find_deleted(older, props))
        kinds = to_numbers(newer.take(at).column(_TYPE), -1)
        _check_types(to_numbers(older.take(at).column(_TYPE), -1), kinds)
        result = newer
        for column in _MERGE_OF_COLUMN:
            if column in newer.context.schema.names:
                some = at[np.isin(kinds, [kind for kind, merged in _COLUMN_OF_TYPE.items() if merged == column])]
                result = replace_records(result, some, _merge_column(older.take(some), newer.take(some), column))
        return CombineResult(result, absent)


def _merge_column(older: BufferedBatch, newer: BufferedBatch, column: str) -> BufferedBatch:
    if not len(newer):
        return newer
    return make_merged_records(newer, {column: _MERGE_OF_COLUMN[column](older.column(column), newer.column(column))})


def _check_types(older: Any, newer: Any) -> None:
    """Refuse versions of different types, and unknown types."""
    unknown = np.flatnonzero(~np.isin(newer, list(_COLUMN_OF_TYPE)))
    if len(unknown):
        raise UnsupportedFeatureError(f"Records of the metadata table of type {newer[unknown[0]]}.")
    if (older != newer).any():
        raise MergeError("Two versions of a record of the metadata table have different types.")
