"""Compute the changes that an update or a merge makes to rows of the table.

A row gets new values in its own file group. Its record key may not change. If its partition changes, a global index
moves it, as an upsert does. Without a global index, key and partition together identify a record, so the change is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, repeat_value, to_booleans
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.table.filter.evaluate import evaluate, evaluate_value
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.dml.bound_clauses import BoundClause
from hoodie_py.writer.dml.names import join_sides
from hoodie_py.writer.dml.source_join import SourceRows
from hoodie_py.writer.input.conform import refuse_unstorable
from hoodie_py.writer.input.value_fit import fit_column
from hoodie_py.writer.keygen.generator import KeyGenerator
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.records import WriteRecords
from hoodie_py.writer.row_errors import refuse_rows

_BATCH_ROWS = 1 << 16
_MOST_BATCH_ROWS = 1 << 20

FindDeletes = Callable[[pa.Table], pa.ChunkedArray | None]


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows with new values, their keys, and a mask of the deletes. ``moved`` rows go to another partition."""

    rows: pa.Table
    keys: pa.Array
    deletes: pa.Array
    moved: pa.Table


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Computes the changes of an update or a merge.

    Attributes:
        schema: schema of the table's files.
        columns: columns of changed rows, in the order of files.
        keys: reads record keys.
        generator: makes keys and partition paths of changed rows.
        moves: whether a row whose partition changes moves there; else that is refused.
        source: a merge's source; None for an update.
        matched, by_source: clauses for rows with and without a match; an update's rows all match.
        find_deletes: returns a mask of the rows that their own columns mark as deletes; None if no such column is set.
    """

    schema: OutputSchema
    columns: tuple[str, ...]
    keys: RecordKeys
    generator: KeyGenerator
    moves: bool
    source: SourceRows | None
    matched: tuple[BoundClause, ...]
    by_source: tuple[BoundClause, ...] = ()
    find_deletes: FindDeletes | None = None
    _empty: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        fields = [self.schema.arrow.field(name).with_nullable(True) for name in self.columns]
        object.__setattr__(self, "_empty", pa.schema(fields).empty_table())

    def compute(self, file_slice: FileSlice, batch: pa.RecordBatch) -> ChangedRows | None:
        """Return the changes of rows of a file group; None without changes.

        Raises:
            InvalidQueryError: an expression has no value for a row, several rows of the source change one row, a key
                would change, or a value does not fit its column.
        """
        everything = np.arange(batch.num_rows)
        if self.source is None:
            joined = join_sides(batch.num_rows, batch, None)
            parts = self._apply(self.matched, file_slice, batch, everything, joined)
        else:
            at, found = self.source.find_pairs(batch)
            parts = self._apply_to_pairs(file_slice, batch, at, found) if self.matched and len(at) else []
            if self.by_source:
                alone = np.setdiff1d(everything, at)
                rows = batch.take(from_numpy(alone))
                parts += self._apply(self.by_source, file_slice, batch, alone, join_sides(len(alone), rows, None))
        if not parts:
            return None
        rows = pa.concat_tables([each.rows for each in parts])
        return ChangedRows(
            rows,
            pa.concat_arrays([each.keys for each in parts]),
            pa.concat_arrays([each.deletes for each in parts]),
            pa.concat_tables([each.moved for each in parts]),
        )

    def _apply_to_pairs(
        self, file_slice: FileSlice, batch: pa.RecordBatch, at: np.ndarray, found: np.ndarray
    ) -> list[ChangedRows]:
        assert self.source is not None
        joined = self.source.pair(batch, at, found)
        chosen = choose_clauses(self.matched, joined)
        acting = np.flatnonzero(chosen >= 0)
        rows, counts = np.unique(at[acting], return_counts=True)
        if len(rows) < len(acting):
            # Several rows of the source may delete one row: the result is the same.
            again = np.unique(chosen[acting][np.isin(at[acting], rows[counts > 1])])
            if not all(self.matched[each].deletes for each in again.tolist()):
                keys = self.keys.read_keys(batch.take(from_numpy(rows[counts > 1][:5])))
                raise InvalidQueryError(
                    "Several rows of the source match one row of the table, so it is not clear which one changes it.",
                    hint="Leave one row of the source for each key.",
                    keys=keys.to_pylist(),
                )
            _, first = np.unique(at[acting], return_index=True)
            acting = acting[first]
        kept = from_numpy(acting)
        return self._make(self.matched, chosen[acting], file_slice, batch, at[acting], joined.take(kept))

    def _apply(
        self,
        clauses: Sequence[BoundClause],
        file_slice: FileSlice,
        batch: pa.RecordBatch,
        at: np.ndarray,
        joined: pa.RecordBatch,
    ) -> list[ChangedRows]:
        chosen = choose_clauses(clauses, joined)
        acting = np.flatnonzero(chosen >= 0)
        if not len(acting):
            return []
        return self._make(clauses, chosen[acting], file_slice, batch, at[acting], joined.take(from_numpy(acting)))

    def _make(
        self,
        clauses: Sequence[BoundClause],
        chosen: np.ndarray,
        file_slice: FileSlice,
        batch: pa.RecordBatch,
        at: np.ndarray,
        joined: pa.RecordBatch,
    ) -> list[ChangedRows]:
        parts = []
        for number in np.unique(chosen).tolist():
            here = np.flatnonzero(chosen == number)
            rows = pa.Table.from_batches([batch.take(from_numpy(at[here]))])
            keys = _join(self.keys.read_keys(each) for each in rows.to_batches())
            if clauses[number].deletes:
                deletes = repeat_value(True, pa.bool_(), len(here))
                parts.append(ChangedRows(self._keep_columns(rows), keys, deletes, self._empty))
            else:
                values = joined.take(from_numpy(here))
                parts.append(self._update(clauses[number], file_slice, rows, keys, values))
        return parts

    def _keep_columns(self, rows: pa.Table) -> pa.Table:
        """Return the columns of changed rows. Columns that were not read are null: then there are only deletes."""
        has, count = set(rows.column_names), rows.num_rows
        fields = self._empty.schema
        made = [rows[each.name].cast(each.type) if each.name in has else pa.nulls(count, each.type) for each in fields]
        return pa.Table.from_arrays(made, schema=fields)

    def _update(
        self, clause: BoundClause, file_slice: FileSlice, rows: pa.Table, keys: pa.Array, joined: pa.RecordBatch
    ) -> ChangedRows:
        made = []
        for name in self.columns:
            target = self.schema.arrow.field(name)
            node = clause.values.get(name)
            if node is None:
                made.append(rows.column(name).cast(target.type))
            else:
                made.append(fit_column(pa.chunked_array([evaluate_value(node, joined)]), target))
        changed = pa.Table.from_arrays(made, schema=self._empty.schema)
        refuse_unstorable(changed, self.schema)
        self._check_keys(clause, changed, keys)
        marked = None if self.find_deletes is None else self.find_deletes(changed)
        deletes = repeat_value(False, pa.bool_(), len(keys)) if marked is None else marked.combine_chunks()
        moving = self._find_moving(clause, file_slice, changed, keys)
        if not moving.any():
            return ChangedRows(changed, keys, deletes, self._empty)
        stay = from_numpy(np.flatnonzero(~moving))
        moved = changed.take(from_numpy(np.flatnonzero(moving)))
        return ChangedRows(changed.take(stay), keys.take(stay), deletes.take(stay), moved)

    def _check_keys(self, clause: BoundClause, changed: pa.Table, keys: pa.Array) -> None:
        """Refuse new values of key fields that produce another key."""
        fields = [find_top_level_name(self.schema.arrow, name) for name in self.generator.key_fields]
        if not set(fields) & set(clause.values):
            return
        differs = pc.not_equal(self.generator.make_keys(changed), pa.chunked_array([keys]))
        refuse_rows(
            differs,
            "The record keys of rows would change.",
            column=",".join(fields),
            values=keys,
            hint="Delete the rows, and insert them with their new keys.",
        )

    def _find_moving(self, clause: BoundClause, file_slice: FileSlice, changed: pa.Table, keys: pa.Array) -> np.ndarray:
        fields = [find_top_level_name(self.schema.arrow, name) for name in self.generator.partition_fields]
        if not set(fields) & set(clause.values):
            return np.zeros(len(keys), bool)
        paths = self.generator.make_partition_paths(changed)
        differs = to_booleans(pc.not_equal(paths, file_slice.partition_path).combine_chunks())
        if not self.moves:
            refuse_rows(
                pa.array(differs),
                "The partitions of rows would change, and no global index moves them.",
                column=",".join(fields),
                values=keys,
                hint="Name a global index that updates partition paths, or delete the rows and insert them again.",
            )
        return differs


def choose_clauses(clauses: Sequence[BoundClause], joined: pa.RecordBatch) -> np.ndarray:
    """Return the number of the first clause whose condition holds for each row; -1 if none does."""
    chosen = np.full(joined.num_rows, -1)
    for number, clause in enumerate(clauses):
        left = np.flatnonzero(chosen < 0)
        if not len(left):
            break
        if clause.condition is None:
            chosen[left] = number
            break
        rows = joined if len(left) == joined.num_rows else joined.take(from_numpy(left))
        holds = to_booleans(evaluate(clause.condition, rows).fill_null(False))
        chosen[left[holds]] = number
    return chosen


def _join(arrays: Iterable[pa.Array]) -> pa.Array:
    return pa.concat_arrays(list(arrays))


def choose_batch_rows(changes: RowChanges) -> int:
    """Return how many rows of the target to look up at once: more for a large source, which is hashed each time."""
    rows = 0 if changes.source is None else changes.source.rows.num_rows
    return max(_BATCH_ROWS, min(_MOST_BATCH_ROWS, rows))


def compute_changes(changes: RowChanges, task: ScanTask, batches: Sequence[pa.RecordBatch]) -> list[ChangedRows]:
    """Compute the changes of some rows of a file group; errors as for ``RowChanges.compute``."""
    rows = pa.Table.from_batches(batches).combine_chunks()
    found = (changes.compute(task.file_slice, batch) for batch in rows.to_batches())
    return [each for each in found if each is not None]


def read_changes(changes: RowChanges, task: ScanTask, ordering: tuple[pa.DataType, ...]) -> WriteRecords:
    """Read a file group again, and return its changed rows; errors as for ``make_changed_records``."""
    least, held, found = choose_batch_rows(changes), list[pa.RecordBatch](), list[ChangedRows]()
    for batch in task.to_batches():
        held.append(batch)
        if sum(each.num_rows for each in held) >= least:
            found += compute_changes(changes, task, held)
            held = []
    found += compute_changes(changes, task, held) if held else []
    return make_changed_records(
        (task.file_slice.partition_path, task.file_slice.file_id),
        pa.concat_tables([each.rows for each in found]),
        pa.chunked_array([each.keys for each in found]),
        pa.chunked_array([each.deletes for each in found]),
        ordering,
    )


def make_changed_records(
    key: GroupKey, rows: pa.Table, keys: pa.ChunkedArray, deletes: pa.ChunkedArray, ordering: tuple[pa.DataType, ...]
) -> WriteRecords:
    """Return changed rows of a file group as records.

    ``ordering``: the types of ordering values. The records have no ordering values, so that their deletes win over all
    versions in the table.

    Raises:
        UnsupportedFeatureError: two rows have one key: neither could be changed alone.
    """
    if pc.count_distinct(keys).as_py() < len(keys):
        raise UnsupportedFeatureError(
            "Changing rows of a file group that has several rows of one record key.",
            hint="Upsert or delete these keys first.",
            partition=key[0],
            file_group=key[1],
        )
    return WriteRecords(
        rows=rows,
        keys=keys,
        partition_paths=pa.chunked_array([pa.repeat(pa.scalar(key[0]), len(keys))]),
        deletes=deletes if pc.any(deletes).as_py() else None,
        ordering=tuple(pa.chunked_array([pa.nulls(len(keys), type_)]) for type_ in ordering),
    )
