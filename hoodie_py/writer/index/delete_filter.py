"""Turn a filter into deletes of the rows that it selects.

The rows are read as any query reads them; each row's ``_hoodie_file_name`` names its file group. The deletes have no
ordering values, as in Hudi's ``HoodieDeleteHelper``: they win whatever the ordering values of the table's rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.names import FILE_NAME_FIELD, PARTITION_PATH_FIELD, RECORD_KEY_FIELD
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.scan.scan import make_scan
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
    columns = [RECORD_KEY_FIELD, PARTITION_PATH_FIELD, FILE_NAME_FIELD]
    rows = make_scan(snapshot, columns=columns, filter=chosen, merger=merger, options=dict(options)).to_arrow()
    records = WriteRecords(
        rows=rows.select([]),
        keys=rows.column(RECORD_KEY_FIELD),
        partition_paths=rows.column(PARTITION_PATH_FIELD),
        deletes=pa.chunked_array([pa.repeat(pa.scalar(True), len(rows))]),
    )
    file_ids = pc.replace_substring_regex(rows.column(FILE_NAME_FIELD), "_.*", "").combine_chunks()
    _check_file_groups(snapshot, records, file_ids)
    return TaggedRecords(records, file_ids, pa.nulls(len(rows), pa.string()), np.full(len(rows), -1, np.int64))


def _check_file_groups(snapshot: Snapshot, records: WriteRecords, file_ids: pa.Array) -> None:
    """Refuse rows whose file group is not one of the table's: their deletes would have no effect."""
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
