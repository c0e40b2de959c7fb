"""Place the rows that a merge inserts, and the rows that move to another partition.

New keys are looked up as in an upsert. A key that the table contains, in a row that the condition of the merge did not
match, is refused: the insert would overwrite that row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.table.filter.evaluate import evaluate_value
from hoodie_py.table.filter.predicate import Cast, Column, InList, Predicate
from hoodie_py.table.scan.scan import make_scan
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.dml.bound_clauses import BoundClause
from hoodie_py.writer.dml.changes import choose_clauses
from hoodie_py.writer.dml.names import TARGET, join_sides
from hoodie_py.writer.dml.source_join import JoinCondition, SourceRows
from hoodie_py.writer.input.to_records import make_records
from hoodie_py.writer.input.value_fit import fit_column
from hoodie_py.writer.output_schema import OutputSchema, select_data_columns
from hoodie_py.writer.pipeline.assign import AssignedRecords
from hoodie_py.writer.pipeline.local_engine import HeldRows, LocalEngine, PlacedRecords
from hoodie_py.writer.pipeline.write import Write
from hoodie_py.writer.precombine.combine import number_records
from hoodie_py.writer.records import WriteOperation, WriteRecords

_BATCH_ROWS = 1 << 16
_SHOWN = 5


def place_new_rows(
    write: Write,
    schema: OutputSchema,
    clauses: Sequence[BoundClause],
    source: SourceRows | None,
    condition: JoinCondition | None,
    moved: Sequence[pa.Table],
) -> tuple[Write, AssignedRecords]:
    """Place the rows to insert and the ``moved`` rows.

    Rows of the source are inserted if they did not match and a clause takes them. They are in this process, so it
    places them. ``write`` is the update's or the merge's.

    Returns:
        The write, as ``Write.place`` returns it, and the rows with their places.

    Raises:
        InvalidQueryError: a key occurs twice, is in the table, or rows do not fit.
    """
    inserted = [] if source is None or not clauses else _make_rows(schema, clauses, source)
    rows = [*inserted, *moved]
    if not rows:
        none = WriteRecords(pa.table({}), pa.chunked_array([], pa.string()), None)
        return write, AssignedRecords(none, np.empty(0, np.int64), ())
    settings, snapshot = write.settings, write.snapshot
    known = bool(snapshot.config.record_key_fields)
    # Generated keys are always new.
    placing = replace(write, operation=WriteOperation.UPSERT if known else WriteOperation.INSERT)
    records, made = make_records(pa.concat_tables(rows), snapshot, settings.options, placing.operation)
    _check_distinct(records, by_key_alone=settings.index.is_global)
    held = HeldRows(records, made, LocalEngine())
    placing.check(held)
    count = sum(each.num_rows for each in inserted)
    if count and known and snapshot.instant is not None and not _proves_new(snapshot, condition):
        _refuse_known(write, records.take(np.arange(count)))
    placing, placed = placing.place(held)
    assert isinstance(placed, PlacedRecords)
    return replace(write, snapshot=placing.snapshot), placed.routed


def _make_rows(schema: OutputSchema, clauses: Sequence[BoundClause], source: SourceRows) -> list[pa.Table]:
    columns = select_data_columns(schema.arrow)
    left = np.flatnonzero(~source.matched)
    tables = []
    for start in range(0, len(left), _BATCH_ROWS):
        batch = source.take(left[start : start + _BATCH_ROWS])
        joined = join_sides(batch.num_rows, None, batch)
        chosen = choose_clauses(clauses, joined)
        for number, clause in enumerate(clauses):
            at = np.flatnonzero(chosen == number)
            if len(at):
                tables.append(_make_columns(columns, clause, joined.take(from_numpy(at)), schema))
    return tables


def _make_columns(columns: pa.Schema, clause: BoundClause, joined: pa.RecordBatch, schema: OutputSchema) -> pa.Table:
    made = []
    for field in columns:
        node = clause.values.get(field.name)
        if node is None:
            default = schema.defaults.get(field.name)
            values = pa.repeat(pa.scalar(default, field.type), joined.num_rows)
        else:
            values = evaluate_value(node, joined)
        made.append(fit_column(pa.chunked_array([values]), field))
    return pa.Table.from_arrays(made, schema=columns)


def _check_distinct(records: WriteRecords, *, by_key_alone: bool) -> None:
    codes, count = number_records(records, by_key_alone=by_key_alone)
    if count == len(records):
        return
    again = np.flatnonzero(np.bincount(codes, minlength=count)[codes] > 1)[:_SHOWN]
    raise InvalidQueryError(
        "The merge would insert several rows of one record key.",
        hint="Leave one row of the source for each key.",
        keys=list(dict.fromkeys(records.keys.take(from_numpy(again)).to_pylist())),
    )


def _proves_new(snapshot: Snapshot, condition: JoinCondition | None) -> bool:
    """Whether the table lacks the keys of rows that did not match, as the condition compares just the key."""
    if condition is None or condition.on_target or condition.rest:
        return False
    paths = set()
    for node in condition.target_keys:
        plain = node.child if isinstance(node, Cast) else node
        if not isinstance(plain, Column) or plain.path[0] != TARGET:
            return False
        paths.add(".".join(plain.path[1:]))
    return bool(snapshot.config.record_key_fields) and paths == set(snapshot.config.record_key_fields)


def _refuse_known(write: Write, records: WriteRecords) -> None:
    """Refuse inserts of keys that are alive in the table; without a global index, in the partitions of the rows."""
    settings, snapshot = write.settings, write.snapshot
    config, own = snapshot.config, records.keys.combine_chunks()
    rules = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)
    names = list(dict.fromkeys(find_top_level_name(snapshot.schema.arrow, name) for name in rules.columns))
    wanted = Predicate(InList(Column((RECORD_KEY_FIELD,), pa.string()), tuple(pc.unique(own).to_pylist())))
    scan = make_scan(
        snapshot,
        columns=names,
        filter=wanted if config.populate_meta_fields else None,
        merger=write.merger,
        options=dict(settings.options),
    )
    assert records.partition_paths is not None
    paths = records.partition_paths.combine_chunks()
    for task in scan.tasks():
        if not isinstance(task, ScanTask):
            continue
        here = own if settings.index.is_global else own.filter(pc.equal(paths, task.file_slice.partition_path))
        for batch in task.to_batches() if len(here) else ():
            keys = rules.read_keys(batch)
            known = keys.filter(pc.is_in(keys, value_set=here))
            if len(known):
                raise InvalidQueryError(
                    "The merge would insert record keys that the table has, in rows that its condition does not match.",
                    hint="Merge on the record key.",
                    keys=known.slice(0, _SHOWN).to_pylist(),
                )
