"""Reads the changes of one step as rows before and after, from a change log or by comparing the rows of a file group.

A change log gives the operations, and the images that it has. Other images are looked up by key: rows before in the
slice below the commit, rows after in the file that it wrote (Hudi ``CDCFileGroupIterator``). ``SliceRows`` are the rows
of a file slice with their keys, ``KeyedRows`` those of some keys.

The rows before and after a commit are compared if no file records what the commit changed. Copy-on-write files that
Java writes while change data is enabled need this in one case: a commit that deletes all old rows of a file and inserts
others logs nothing, and Java's query shows only the inserts. The comparison also covers commits from before change data
was enabled, and logs on a base file that repeats a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, index_in, is_valid, join_chunks, repeat_value, take, to_numbers
from hoodie_py.arrow.fields import find_top_level_name, make_nullable
from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.names import AFTER, BEFORE, COMMIT_SEQNO_FIELD, COMMIT_TIME_FIELD, KEY, OP
from hoodie_py.reader.changes.log_changes import LogChangeReader, RepeatedKeyError
from hoodie_py.reader.changes.row_changes import RowChanges
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import FileSlice, LogFile
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.record import DELETE, INSERT, UPDATE
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from hoodie_py.reader.schema_evolution.by_name import conform_batch
from hoodie_py.runtime.fold_gate import FoldGate
from hoodie_py.table.changes.change_log import read_change_log
from hoodie_py.table.changes.images import Images
from hoodie_py.table.changes.json_text import AVRO, write_json
from hoodie_py.table.changes.steps import ChangeLog, ComparedSlices, MergedLog, State, Step, WholeSlice


class SliceRows:
    """Reads some columns of a file slice, and the columns of its keys."""

    def __init__(
        self,
        file_slice: FileSlice,
        info: ReadInfo,
        columns: Sequence[str],
        options: ReadOptions,
        merger: Merger | None,
        gate: FoldGate | None,
    ) -> None:
        self._slice, self._info, self._options, self._merger, self._gate = file_slice, info, options, merger, gate
        self._keys = RecordKeys.of(info.config.populate_meta_fields, info.config.record_key_fields)
        wanted = dict.fromkeys((*columns, *(find_top_level_name(info.schema, name) for name in self._keys.columns)))
        self.schema = pa.schema([info.schema.field(name).with_nullable(True) for name in wanted])

    def read(self) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the rows batch by batch, with their keys."""
        reader = FileGroupReader(
            self._slice, self._info, self.schema.names, self._merger, self._options, gate=self._gate
        )
        for batch in reader.to_batches():
            yield batch, self._keys.read_keys(batch)


class KeyedRows:
    """The rows of some distinct keys; they may spill, so close it.

    ``at`` has the row handle of each key, -1 for none. If a key repeats in the slice, its first row counts.
    """

    def __init__(self, rows: SliceRows, options: ReadOptions, keys: pa.Array) -> None:
        self._spill = Spill(MemoryBudget.from_options(options), ReadStats())
        self._store = RowStore(rows.schema, self._spill)
        self._rows = rows
        self._keys = keys
        self.at = np.full(len(keys), NO_ROW, np.int64)

    def load(self) -> KeyedRows:
        """Read the rows."""
        for batch, keys in self._rows.read():
            numbers = to_numbers(index_in(keys, self._keys), -1).astype(np.int64)
            rows = np.flatnonzero(numbers >= 0)
            rows = rows[self.at[numbers[rows]] == NO_ROW]
            _, first = np.unique(numbers[rows], return_index=True)
            rows = rows[np.sort(first)]
            if len(rows):
                handle = self._store.add(take(batch, from_numpy(rows)))
                self.at[numbers[rows]] = handle + np.arange(len(rows))
        return self

    def take(self, handles: np.ndarray, columns: Sequence[str]) -> pa.RecordBatch:
        """Return rows by their handles; null in every column for -1."""
        return self._store.take(handles, columns)

    def close(self) -> None:
        """Remove the spill files."""
        self._spill.close()


_OPERATIONS = pa.array(["i", "u", "d"])
_CODES = np.array([INSERT, UPDATE, DELETE], np.int8)

_META = (COMMIT_TIME_FIELD, COMMIT_SEQNO_FIELD)


class StepReader:
    """Reads steps of one file group. ``sides``: the wanted images, "before" and "after"."""

    def __init__(
        self,
        info: ReadInfo,
        columns: Sequence[str],
        sides: frozenset[str],
        options: ReadOptions,
        merger: Merger | None = None,
        gate: FoldGate | None = None,
    ) -> None:
        self._info = info
        self._columns = tuple(columns) if sides else ()
        self._sides = sides
        self._options = options
        self._merger = merger
        self._gate = gate
        self._schema = make_nullable(info.schema.field(name) for name in self._columns)

    def read(self, step: Step) -> Iterator[Images]:
        """Yield the changes of a step, commit by commit.

        Raises:
            HoodieError: files that are missing, corrupt or not supported, or versions that do not merge.
        """
        match step:
            case WholeSlice():
                yield from map(Images, self._read_whole(step))
            case MergedLog():
                yield from map(Images, self._read_log(step))
            case ComparedSlices():
                yield from map(Images, self._compare(step))
            case ChangeLog():
                for file in step.files:
                    try:
                        yield from self._read_change_log(step, file)
                    except HoodieError as error:
                        error.locate(path=file.path, instant=step.instant)
                        raise

    def _read_log(self, step: MergedLog) -> Iterator[RowChanges]:
        """Yield the changes of a log, by key; if the base file repeats a key, by comparing whole states."""
        info = self._limit_info(step.instants[-1], step.state, originals=True)
        try:
            yield from LogChangeReader(
                step.state.file_slice, info, step.instants, self._columns, self._merger, self._options, self._gate
            ).read()
        except RepeatedKeyError:
            yield from self._compare_states(step)

    def _compare_states(self, step: MergedLog) -> Iterator[RowChanges]:
        """Yield the changes of a log by comparing the whole slice before and after each commit."""
        for number, instant in enumerate(step.instants):
            old, new = (
                replace(step.state, without=(*step.state.without, *step.instants[at:])) for at in (number, number + 1)
            )
            yield from self._compare(ComparedSlices(instant, old, new), originals=True)

    def _limit_info(self, last: str, state: State, *, originals: bool = False) -> ReadInfo:
        """Return the facts for reading a state as of a commit.

        If each log file belongs to one commit, the slice already has the right files. Up to table version 6 blocks must
        be selected.
        """
        rules = self._info.rules
        limited = replace(
            rules,
            query_instant=last if rules.check_commits else None,
            check_commits=rules.check_commits or bool(state.without),
            inflight=rules.inflight | frozenset(state.without),
            originals=originals,
        )
        return replace(self._info, rules=limited)

    def _read_whole(self, step: WholeSlice) -> Iterator[RowChanges]:
        info = self._limit_info(step.instant, step.state)
        reader = FileGroupReader(
            step.state.file_slice, info, self._columns, self._merger, self._options, gate=self._gate
        )
        for batch in reader.to_batches():
            yield make_one_sided(step.instant, batch, is_insert=step.is_insert)

    def _compare(self, step: ComparedSlices, *, originals: bool = False) -> Iterator[RowChanges]:
        old, new = (
            SliceRows(
                state.file_slice,
                self._limit_info(step.instant, state, originals=originals),
                _list_compared_columns(self._info, self._columns),
                self._options,
                self._merger,
                self._gate,
            )
            for state in (step.before, step.after)
        )
        yield from compare_slices(step.instant, old, new, self._columns, self._options)

    def _read_change_log(self, step: ChangeLog, file: LogFile) -> Iterator[Images]:
        columns = (OP, KEY, BEFORE, AFTER)
        for batch in read_change_log(file, self._info, self._options, columns):
            names = batch.schema.names
            codes = _read_codes(batch)
            logged = frozenset({BEFORE, AFTER}.intersection(names))
            if AFTER in names or not self._sides - logged:
                sides = [self._read_logged(batch, name, codes) for name in (BEFORE, AFTER)]
                yield Images(RowChanges(step.instant, codes, *sides), logged)
            else:
                yield Images(self._look_up(step, batch, codes), logged)

    def _read_logged(self, batch: pa.RecordBatch, side: str, codes: np.ndarray) -> pa.RecordBatch:
        """Return the images that a change log has."""
        if side not in self._sides or side not in batch.schema.names:
            return self._make_nulls(batch.num_rows)
        images = batch.column(side)
        if not pa.types.is_struct(images.type):
            raise CorruptFileError(f"The images {side!r} of a change log are no records.")
        missing = ~is_valid(images)
        wrong = missing & (codes != (INSERT if side == BEFORE else DELETE))
        if wrong.any():
            raise CorruptFileError(
                f"A record of a change log lacks the row {side} the change.", record=int(np.flatnonzero(wrong)[0])
            )
        fields = [each.name for each in images.type]
        rows = pa.RecordBatch.from_arrays(images.flatten(), names=fields)
        filled = conform_batch(rows, self._schema, {**self._info.defaults, **self._info.fallbacks})
        return self._fill_constants(filled)

    def _fill_constants(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        for at, field in enumerate(self._schema):
            if field.name in self._info.constants:
                value = repeat_value(self._info.constants[field.name], field.type, rows.num_rows)
                rows = rows.set_column(at, field, value)
        return rows

    def _look_up(self, step: ChangeLog, batch: pa.RecordBatch, codes: np.ndarray) -> RowChanges:
        """Take the images that a change log lacks from the slices before and after the commit."""
        if KEY not in batch.schema.names:
            raise CorruptFileError("A change log has neither the rows after its changes nor their keys.")
        keys = batch.column(KEY)
        if not pa.types.is_string(keys.type):
            raise CorruptFileError("The keys of a change log are no texts.")
        if keys.null_count:
            raise CorruptFileError("A record of a change log has no key.")
        # Each key is looked up once, however many changes of it the batch has.
        distinct = join_chunks(pa.chunked_array([keys]).unique())
        numbers = to_numbers(index_in(keys, distinct), -1)
        found: dict[str, pa.RecordBatch] = {}
        with ExitStack() as open_rows:
            for side, state, without in ((BEFORE, step.before, INSERT), (AFTER, step.after, DELETE)):
                if side in batch.schema.names or side not in self._sides:
                    found[side] = self._read_logged(batch, side, codes)
                    continue
                known = _expect(state, side)
                info = self._limit_info(step.instant, known)
                rows = SliceRows(known.file_slice, info, self._columns, self._options, self._merger, self._gate)
                keyed = open_rows.enter_context(closing(KeyedRows(rows, self._options, distinct)))
                handles = keyed.load().at[numbers]
                handles = np.where(codes == without, NO_ROW, handles)
                lost = (handles == NO_ROW) & (codes != without)
                if lost.any():
                    key = keys[int(np.flatnonzero(lost)[0])].as_py()
                    raise CorruptFileError(f"A change log names a key that has no row {side} the change.", key=key)
                found[side] = keyed.take(handles, self._columns)
        return RowChanges(step.instant, codes, found[BEFORE], found[AFTER])

    def _make_nulls(self, count: int) -> pa.RecordBatch:
        return conform_batch(pa.RecordBatch.from_struct_array(pa.nulls(count, pa.struct([]))), self._schema)


def make_one_sided(instant: str, rows: pa.RecordBatch, *, is_insert: bool) -> RowChanges:
    """Return rows as inserted or as deleted rows."""
    codes = np.full(rows.num_rows, INSERT if is_insert else DELETE, np.int8)
    return RowChanges(instant, codes, rows, rows)  # the side that does not count is never read


def _expect(state: State | None, side: str) -> State:
    if state is None:
        raise UnsupportedFeatureError(
            f"A change log without the rows {side} its changes, though the table's logging mode has them.",
            hint="The logging mode was changed after this commit; start the range later.",
        )
    return state


def _read_codes(batch: pa.RecordBatch) -> np.ndarray:
    if OP not in batch.schema.names:
        raise CorruptFileError("A change log has no operations.")
    operations = batch.column(OP)
    if not pa.types.is_string(operations.type):
        raise CorruptFileError("The operations of a change log are no texts.")
    found = to_numbers(index_in(operations, _OPERATIONS), -1).astype(np.int64)
    if (found < 0).any():
        wrong = int(np.flatnonzero(found < 0)[0])
        raise CorruptFileError(f"A change log has an unknown operation {operations[wrong].as_py()!r}.", record=wrong)
    return _CODES[found]


def _list_compared_columns(info: ReadInfo, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a comparison reads to find changes of ``columns``."""
    return tuple(dict.fromkeys((*columns, *(_META if info.config.populate_meta_fields else info.schema.names))))


def compare_slices(
    instant: str, old: SliceRows, new: SliceRows, columns: Sequence[str], options: ReadOptions
) -> Iterator[RowChanges]:
    """Yield the rows that differ between two states, which have the columns of ``_list_compared_columns``.

    A row that stays has the same key and meta columns, which name the commit that wrote it and the row's number there;
    without meta columns all columns are the same. The other rows pair by key, in their order: they are updates. Rows
    without a pair are deletes and inserts. A state may have a key several times.

    Raises:
        HoodieError: files that are missing, corrupt or not supported, or versions that do not merge.
    """
    with closing(Spill(MemoryBudget.from_options(options), ReadStats())) as spill:
        store = RowStore(old.schema, spill)
        before, after = _Rows(), _Rows()
        for batch, keys in old.read():
            before.add(store.add(batch), keys, _identify(batch, keys))
        left = before.count_identities()
        for batch, keys in new.read():
            changed = left.take_away(_identify(batch, keys))
            if len(changed):
                rows = from_numpy(changed)
                after.add(store.add(take(batch, rows)), take(keys, rows), None)
        before.keep(left.find_left())
        for codes, gone, come in _pair(before, after):
            for start in range(0, len(gone), options.batch_rows):
                part = slice(start, start + options.batch_rows)
                sides = (store.take(handles[part], columns) for handles in (gone, come))
                yield RowChanges(instant, codes[part], *sides)


def _identify(batch: pa.RecordBatch, keys: pa.Array) -> pa.Array:
    """Return a text for each row, which is equal in both states if the row stayed."""
    if COMMIT_TIME_FIELD in batch.schema.names:
        parts = [batch.column(name).fill_null("") for name in _META]
    else:
        fields = [field.with_nullable(True) for field in batch.schema]
        parts = [write_json(pa.StructArray.from_arrays(batch.columns, fields=fields), AVRO)]
    return pc.binary_join_element_wise(*parts, keys, "\x00")


class _Rows:
    """Handles and keys of rows, in their order."""

    def __init__(self) -> None:
        self._handles: list[np.ndarray] = []
        self._keys: list[pa.Array] = []
        self._identities: list[pa.Array] = []

    def add(self, first: int, keys: pa.Array, identities: pa.Array | None) -> None:
        self._handles.append(np.arange(first, first + len(keys)))
        self._keys.append(keys)
        if identities is not None:
            self._identities.append(identities)

    def count_identities(self) -> _Left:
        found = _Left(join_chunks(pa.chunked_array(self._identities or [pa.array([], pa.string())])))
        self._identities = []
        return found

    def keep(self, rows: np.ndarray) -> None:
        self._handles = [self.handles[rows]]
        self._keys = [take(self.keys, from_numpy(rows))]

    @property
    def handles(self) -> np.ndarray:
        return np.concatenate([np.empty(0, np.int64), *self._handles])

    @property
    def keys(self) -> pa.Array:
        return join_chunks(pa.chunked_array(self._keys or [pa.array([], pa.string())]))


class _Left:
    """The old rows that no new row has matched yet, by their identities."""

    def __init__(self, identities: pa.Array) -> None:
        encoded = identities.dictionary_encode()
        self._codes = to_numbers(encoded.indices).astype(np.int64)
        self._values = encoded.dictionary
        self._counts = np.bincount(self._codes, minlength=len(self._values))

    def take_away(self, identities: pa.Array) -> np.ndarray:
        """Remove one old row for each new row of the same identity.

        Returns the indices of new rows without an old row.
        """
        codes = to_numbers(index_in(identities, self._values), -1).astype(np.int64)
        known = np.flatnonzero(codes >= 0)
        stays = known[rank_values(codes[known]) < self._counts[codes[known]]]
        np.subtract.at(self._counts, codes[stays], 1)
        changed = np.ones(len(codes), bool)
        changed[stays] = False
        return np.flatnonzero(changed)

    def find_left(self) -> np.ndarray:
        """Return the numbers of the rows that are left."""
        return np.flatnonzero(rank_values(self._codes) < self._counts[self._codes])


def rank_values(codes: np.ndarray) -> np.ndarray:
    """Return for each value how many equal values come before it."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(codes) else ordered
    sizes = np.diff(np.concatenate([starts, [len(codes)]]))
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(starts, sizes)
    return ranks


def _pair(before: _Rows, after: _Rows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield operations, handles of old rows and handles of new rows; -1 stands for no row."""
    old, new = before.handles, after.handles
    both = pa.concat_arrays([before.keys, after.keys]).dictionary_encode()
    codes = to_numbers(both.indices).astype(np.int64)
    mine, theirs = codes[: len(old)], codes[len(old) :]
    span = len(codes) + 1
    places, wanted = mine * span + rank_values(mine), theirs * span + rank_values(theirs)
    _, at, into = np.intersect1d(places, wanted, assume_unique=True, return_indices=True)
    gone, come = np.ones(len(old), bool), np.ones(len(new), bool)
    gone[at], come[into] = False, False
    for code, first, last in (
        (UPDATE, old[at], new[into]),
        (DELETE, old[gone], np.full(np.count_nonzero(gone), NO_ROW, np.int64)),
        (INSERT, np.full(np.count_nonzero(come), NO_ROW, np.int64), new[come]),
    ):
        yield np.full(len(first), code, np.int8), first, last
