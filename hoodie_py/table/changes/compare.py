"""Compare the rows of a file group before and after a commit that wrote no change log.

Copy-on-write files that Java writes while change data is enabled need this in one case: a commit that deletes all old
rows of a file and inserts others logs nothing, and Java's query shows the inserts alone. It also covers commits from
before change data was enabled.

A row changed if its meta columns name another commit, or another row of the commit. Without meta columns all columns
are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, make_batch_without_columns, to_booleans, to_numbers
from hoodie_py.arrow.compute import index_in, take
from hoodie_py.formats.names import COMMIT_SEQNO_FIELD, COMMIT_TIME_FIELD
from hoodie_py.reader.changes.row_changes import RowChanges
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.reader.record.record import DELETE, INSERT, UPDATE
from hoodie_py.reader.record.row_store import NO_ROW
from hoodie_py.runtime.fold_gate import FoldGate
from hoodie_py.table.changes.json_text import AVRO, write_json
from hoodie_py.table.changes.keyed_rows import KeyedRows, SliceRows
from hoodie_py.table.changes.steps import ComparedSlices


def compare_slices(
    step: ComparedSlices,
    info: ReadInfo,
    columns: Sequence[str],
    options: ReadOptions,
    merger: Merger | None,
    gate: FoldGate | None,
) -> Iterator[RowChanges]:
    """Yield the rows that differ between the slices of a step; of a key that repeats, the first row counts.

    Raises:
        HoodieError: files that are missing, corrupt or not supported, or versions that do not merge.
    """
    has_meta = info.config.populate_meta_fields
    compared = (COMMIT_TIME_FIELD, COMMIT_SEQNO_FIELD) if has_meta else tuple(info.schema.names)
    rows = SliceRows(info, tuple(dict.fromkeys((*columns, *compared))), options, merger, gate)
    lean = SliceRows(info, (), options, merger, gate)
    keys = [lean.keys.read_keys(batch) for batch in lean.read(step.before).to_batches()]
    distinct = join_chunks(pa.chunked_array(keys or [pa.array([], pa.string())]).unique())
    stays = np.zeros(len(distinct), bool)
    with closing(KeyedRows(rows, options, distinct)) as old:
        old.load(step.before)
        for batch in rows.read(step.after).to_batches():
            numbers = to_numbers(index_in(rows.keys.read_keys(batch), distinct), -1).astype(np.int64)
            known = numbers >= 0
            stays[numbers[known]] = True
            handles = np.where(known, old.at[numbers] if len(old.at) else NO_ROW, NO_ROW)
            changed = np.flatnonzero(~known | _differ(old.take(handles, compared), batch.select(list(compared))))
            if len(changed):
                codes = np.where(known[changed], UPDATE, INSERT).astype(np.int8)
                after = _take(batch, changed, columns)
                yield RowChanges(step.instant, codes, old.take(handles[changed], columns), after)
        gone = old.at[~stays]
        for start in range(0, len(gone), options.batch_rows):
            before = old.take(gone[start : start + options.batch_rows], columns)
            yield RowChanges(step.instant, np.full(before.num_rows, DELETE, np.int8), before, before)


def _take(batch: pa.RecordBatch, rows: np.ndarray, columns: Sequence[str]) -> pa.RecordBatch:
    if not columns:
        return make_batch_without_columns(len(rows))
    return take(batch.select(list(columns)), from_numpy(rows))


def _differ(old: pa.RecordBatch, new: pa.RecordBatch) -> np.ndarray:
    """Say for each pair of rows whether a column differs."""
    differ = np.zeros(old.num_rows, bool)
    for mine, theirs in zip(old.columns, new.columns, strict=True):
        if pa.types.is_nested(mine.type) or pa.types.is_floating(mine.type):  # NaN equals itself here
            mine, theirs = write_json(mine, AVRO), write_json(theirs, AVRO)
        lacks = pc.equal(mine.is_null(), theirs.is_null())
        equal = pc.if_else(pc.or_(mine.is_null(), theirs.is_null()), lacks, pc.equal(mine, theirs))
        differ |= ~to_booleans(equal)
    return differ
