"""Turn a filter into deletes of the rows that it selects.

The rows are read as any query reads them; each row's ``_hoodie_file_name`` names its file group. A table without meta
fields is read slice by slice instead, and the keys are computed. The deletes have no ordering values, as in Hudi's
``HoodieDeleteHelper``: they win whatever ordering values the table's rows have.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import join_chunks, repeat_value
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.names import FILE_NAME_FIELD, PARTITION_PATH_FIELD, RECORD_KEY_FIELD
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.table.scan.scan import make_scan
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.scan.threads import count_threads, read_in_threads
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.precombine.merge_options import check_merge_options
from hoodie_py.writer.records import TaggedRecords, WriteRecords


def make_deletes_by_filter(
    snapshot: Snapshot,
    chosen: str | pc.Expression,
    options: Mapping[str, str],
    merger: Merger | None = None,
) -> TaggedRecords:
    """Return deletes of the rows that a filter selects. The filter is Spark SQL text or a pyarrow expression.

    Raises:
        InvalidQueryError: the filter is not valid.
        InvalidTableError: a row's file group is unknown.
        MergeError: the table's merger is missing.
    """
    check_merge_options(snapshot.config, options)
    if not snapshot.config.populate_meta_fields:
        return _make_deletes_by_slice(snapshot, chosen, options, merger)
    columns = [RECORD_KEY_FIELD, PARTITION_PATH_FIELD, FILE_NAME_FIELD]
    rows = make_scan(snapshot, columns=columns, filter=chosen, merger=merger, options=dict(options)).to_arrow()
    file_ids = pc.replace_substring_regex(rows.column(FILE_NAME_FIELD), "_.*", "").combine_chunks()
    found = make_deletes(rows.column(RECORD_KEY_FIELD), rows.column(PARTITION_PATH_FIELD), file_ids)
    _check_file_groups(snapshot, found.records, file_ids)
    return found


def _make_deletes_by_slice(
    snapshot: Snapshot, chosen: str | pc.Expression, options: Mapping[str, str], merger: Merger | None
) -> TaggedRecords:
    """Return deletes of the rows that a filter selects in a table without meta fields."""
    rules = RecordKeys.of(snapshot.config.populate_meta_fields, snapshot.config.record_key_fields)
    names = list(dict.fromkeys(find_top_level_name(snapshot.schema.arrow, name) for name in rules.columns))
    scan = make_scan(snapshot, columns=names, filter=chosen, merger=merger, options=dict(options))
    tasks = [each for each in scan.tasks() if isinstance(each, ScanTask)]
    keys, paths, file_ids = [], [], []
    with closing(read_in_threads([each.to_batches for each in tasks], count_threads(options))) as batches:
        for task, batch in batches:
            file_slice = tasks[task].file_slice
            keys.append(rules.read_keys(batch))
            paths.append(repeat_value(file_slice.partition_path, pa.string(), batch.num_rows))
            file_ids.append(repeat_value(file_slice.file_id, pa.string(), batch.num_rows))
    everywhere = (pa.chunked_array(each, pa.string()) for each in (keys, paths, file_ids))
    return make_deletes(*everywhere)


def make_deletes(keys: pa.ChunkedArray, paths: pa.ChunkedArray, file_ids: pa.ChunkedArray) -> TaggedRecords:
    """Return deletes of keys in known file groups."""
    count = len(keys)
    records = WriteRecords(pa.table({}), keys, paths, pa.chunked_array([repeat_value(True, pa.bool_(), count)]))
    places = np.full(count, -1, np.int64)
    return TaggedRecords(records, join_chunks(file_ids), pa.nulls(count, pa.string()), places)


def _check_file_groups(snapshot: Snapshot, records: WriteRecords, file_ids: pa.Array) -> None:
    """Refuse rows whose file group does not belong to the table: their deletes would have no effect."""
    places = pa.table({"partition": records.partition_paths, "file_id": file_ids}).group_by(["partition", "file_id"])
    known = {(each.partition_path, each.file_id) for each in snapshot.view.list_slices()}
    for row in places.aggregate([]).to_pylist():
        if (row["partition"], row["file_id"]) not in known:
            raise InvalidTableError(
                "A row does not say which file group it is in.",
                hint="Delete it by its key.",
                partition=row["partition"],
                file_group=row["file_id"],
            )
