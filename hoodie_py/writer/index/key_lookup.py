"""Find record keys in a table: in the key columns of base files, and in logs that may add keys.

Reads only the key columns of files that may contain one of the keys, several files at a time. Which files may is known
from their footers, or from the metadata table without opening them (``StoredKeyFacts``). A log is read if it may
contain keys that the base file lacks:

* there is no base file, or the file group is a bucket;
* the commits record that a log file contains inserts, or record nothing, as they are archived or too many
  (``log_stats``);
* a compaction came between the base file and the log.

``find`` does not show whether a key is alive or was deleted by the log. ``find_alive`` does, by a merged read. Agrees
with Hudi's ``HoodieKeyLookupHandle`` and ``HoodieMergedReadHandle``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, index_in, join_chunks, repeat_value, take, to_booleans, to_numbers
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.formats.indexes import keys as index_keys
from hoodie_py.formats.indexes.definitions import BLOOM_FILTERS, COLUMN_STATS
from hoodie_py.formats.indexes.ranges import read_trusted_ranges
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN, STATISTICS_COLUMN
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.base.key_filter import KeyFilter
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions, ReadStats
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import KEY, MetadataView
from hoodie_py.table.scan.threads import count_threads, read_in_threads
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.log_stats import LogStats
from hoodie_py.writer.handles.append import writes_positions
from hoodie_py.writer.index.bucket import is_likely_bucket
from hoodie_py.writer.settings import WriteSettings

UNKNOWN_ROW = -1
SEVERAL_ROWS = -2
"""Row number that stands for all rows of one key in a base file."""

_BATCH_ROWS = 1 << 17
# Arrow hashes the wanted keys for each look-up: gather at least this many keys of files, and 8 times the wanted keys.
_AT_ONCE = 1 << 18
_TIMES = 8
_KEY = "key"

Mask = npt.NDArray[np.bool_]
_FEW = 16  # so many base files are opened faster than a metadata table
_BLOOMS_AT_ONCE = 64  # each may take half a megabyte
_MOST_KEYS = 1_000  # more keys are not looked up in the filters of unread files
_MANY_ROWS = 1 << 62  # stands for an unknown number of rows
_MOST_PREFIXES = 64  # partitions; for more, all of a column's statistics are read


@dataclass(frozen=True, slots=True)
class KeyLookupRequest:
    """Keys to look up, and the file slices to look in. The keys are distinct strings, without nulls."""

    keys: pa.Array
    slices: Sequence[FileSlice]


@dataclass(frozen=True, slots=True)
class KeyLookupResult:
    """One entry for each requested key and each place that contains it: a row of a base file, or a log.

    Entries are sorted by request, key, slice and row.

    Attributes:
        groups: int64; number of the request.
        keys: int64; number of the key in its request.
        slices: int64; number of the file slice in its request.
        rows: int64; row number in the base file; ``UNKNOWN_ROW`` in a log.
    """

    groups: np.ndarray
    keys: np.ndarray
    slices: np.ndarray
    rows: np.ndarray

    def take(self, at: np.ndarray) -> KeyLookupResult:
        """Return some of the entries."""
        return KeyLookupResult(self.groups[at], self.keys[at], self.slices[at], self.rows[at])

    def deduplicate_by_slice(self) -> KeyLookupResult:
        """Return one entry for each key and file slice; ``SEVERAL_ROWS`` replaces the rows of a repeated key."""
        repeats = self.find_repeats()
        rows = self.rows.copy()
        rows[np.flatnonzero(repeats) - 1] = SEVERAL_ROWS
        return KeyLookupResult(self.groups, self.keys, self.slices, rows).take(np.flatnonzero(~repeats))

    def find_repeats(self) -> np.ndarray:
        """Return a mask of the entries with the same key and file slice as the entry before."""
        repeats = np.zeros(len(self.keys), bool)
        repeats[1:] = (np.diff(self.groups) == 0) & (np.diff(self.keys) == 0) & (np.diff(self.slices) == 0)
        return repeats


class KeyLookup:
    """Look keys up in a table as of a snapshot.

    Args:
        snapshot: the table.
        settings: the writer's options.
        merger: decides instead of the table's merge mode when logs are merged.

    Attributes:
        writes_positions: whether the write's log files carry row numbers of base files.
        record_keys: makes the table's record keys of rows.
    """

    def __init__(self, snapshot: Snapshot, settings: WriteSettings, merger: Merger | None = None) -> None:
        self._snapshot = snapshot
        self._merger = merger
        self._options = ReadOptions(options=settings.options)
        self._threads = count_threads(settings.options)
        self._budget = MemoryBudget.from_options(self._options)
        config = snapshot.config
        self._log_stats = LogStats(snapshot.timeline)
        self._by_bucket = settings.index.is_bucket
        self._facts = StoredKeyFacts(snapshot, settings.options)
        self.writes_positions = writes_positions(config, settings.options)
        self.record_keys = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)

    @property
    def keys_at_once(self) -> int:
        """The number of keys to look up in one pass over the files."""
        return max(_AT_ONCE, self._budget.limit // 512)

    def find(self, wanted: Sequence[KeyLookupRequest]) -> KeyLookupResult:
        """Find keys in base files and logs.

        Raises:
            CorruptFileError: a base or log file is damaged.
            MergeError: logs have to be read, and the table's merger is missing.
            StorageError: a file cannot be read.
        """
        self._log_stats.read_ahead(log for each in wanted for one in each.slices for log in one.log_files)
        places: list[tuple[int, int, bool]] = []
        jobs = []
        for group, each in enumerate(wanted):
            if not len(each.keys):
                continue
            keys = KeyFilter(each.keys)
            holders = self._facts.find_holders(keys, each.slices)
            for number, file_slice in enumerate(each.slices):
                if file_slice.base_file is not None and holders[number]:
                    places.append((group, number, False))
                    jobs.append(partial(self._read_base_keys, file_slice.base_file, keys))
                if self._may_add_keys(file_slice):
                    places.append((group, number, True))
                    jobs.append(partial(self._read_log_keys, file_slice))
        looking = _KeyMatcher(wanted, places, max(1, self._budget.portion))
        with closing(read_in_threads(jobs, self._threads)) as batches:
            for job, batch in batches:
                looking.add(job, batch.column(0))
        return looking.finish()

    def iterate_keys(self, file_slice: FileSlice) -> Generator[tuple[pa.Array, int], None, None]:
        """Yield all keys of a file slice in batches, with the row number of the first key; -1 for keys of the log.

        Raises:
            HoodieError: as ``find``.
        """
        row = 0
        for batch in () if file_slice.base_file is None else self._read_base_keys(file_slice.base_file, None):
            yield batch.column(0), row
            row += batch.num_rows
        for batch in self._read_log_keys(file_slice) if self._may_add_keys(file_slice) else ():
            yield batch.column(0), UNKNOWN_ROW

    def find_alive(self, file_slice: FileSlice, keys: pa.Array) -> np.ndarray:
        """Return a mask of the keys that a merged read of the slice returns. All keys are distinct and in its files."""
        if not file_slice.log_files:
            return np.ones(len(keys), bool)
        living = np.zeros(len(keys), bool)
        for _, found in self._read_merged(file_slice, keys, self._key_columns):
            living[found[found >= 0]] = True
        return living

    def read_rows(self, file_slice: FileSlice, keys: pa.Array) -> tuple[pa.Table, np.ndarray]:
        """Read the merged rows of some keys in all columns of the table; also return the number of each row's key."""
        tables, numbers_ = [], []
        for batch, found in self._read_merged(file_slice, keys, None):
            at = np.flatnonzero(found >= 0)
            tables.append(batch.take(pa.array(at)))
            numbers_.append(found[at])
        schema = self._snapshot.read_info(file_slice).schema
        if not tables:
            return pa.table([pa.nulls(0, field.type) for field in schema], names=schema.names), np.empty(0, np.int64)
        return pa.Table.from_batches(tables), np.concatenate(numbers_)

    @property
    def _key_columns(self) -> list[str]:
        schema = self._snapshot.schema.arrow
        return list(dict.fromkeys(find_top_level_name(schema, name) for name in self.record_keys.columns))

    def _read_merged(
        self, file_slice: FileSlice, keys: pa.Array, columns: list[str] | None
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
        """Yield batches of a merged read with the number of each row's key, -1 for other keys."""
        reader = FileGroupReader(file_slice, self._snapshot.read_info(file_slice), columns, self._merger, self._options)
        for batch in reader.to_batches():
            found = pc.index_in(self.record_keys.read_keys(batch), value_set=keys)
            yield batch, to_numbers(found, -1).astype(np.int64)

    def _read_base_keys(self, base_file: BaseFile, keys: KeyFilter | None) -> Generator[pa.RecordBatch, None, None]:
        base = open_by_extension(self._snapshot.files, base_file, self._snapshot.times)
        # Java writes no keys into footers of tables without meta fields; other writers may spell them differently.
        if keys is not None and not self.record_keys.virtual and not keys.may_hold(base.key_facts, base.num_rows):
            return
        schema = self._snapshot.schema.arrow
        columns = pa.schema([schema.field(name) for name in self._key_columns])
        for batch in base.read_batches(columns, _BATCH_ROWS):
            yield pa.RecordBatch.from_arrays([self.record_keys.read_keys(batch)], [_KEY])

    def _read_log_keys(self, file_slice: FileSlice) -> Generator[pa.RecordBatch, None, None]:
        info = self._snapshot.read_info(file_slice)
        with closing(LogReader(file_slice, info, [], self._merger, self._options, ReadStats())) as log:
            for block in log.read_blocks():
                yield pa.RecordBatch.from_arrays([block.entries.keys], [_KEY])

    def _may_add_keys(self, file_slice: FileSlice) -> bool:
        """Whether a slice's log may contain keys that its base file lacks."""
        if not file_slice.log_files:
            return False
        if file_slice.base_file is None or self._by_bucket or is_likely_bucket(file_slice.file_id):
            return True
        said = self._log_stats
        for log in file_slice.log_files:
            stats = said.find(log)
            if not stats or any(stat.num_inserts for stat in stats):
                return True
            if self._is_older(log, file_slice.base_file, stats):
                return True
        return False

    def _is_older(self, log: LogFile, base: BaseFile, stats: Sequence[WriteStat]) -> bool:
        """Whether a log file was begun before its slice's base file existed.

        Then a compaction was planned. Keys of the log were in the base file before, and the compaction may have deleted
        them.
        """
        visibility = self._snapshot.view.visibility
        if visibility.logs_carry_base_instant:
            return any(stat.base_file != base.name for stat in stats)
        return log.name.instant < visibility.find_completion_time(base.instant, log.name.instant)


class _KeyMatcher:
    """Match keys of files with the requested keys, many at once.

    ``places``: for each job its request, its slice, and whether its keys come from a log. At most ``most_bytes`` of
    keys are gathered.
    """

    def __init__(
        self, wanted: Sequence[KeyLookupRequest], places: Sequence[tuple[int, int, bool]], most_bytes: int
    ) -> None:
        self._wanted = wanted
        self._places = places
        self._most_bytes = most_bytes
        self._read = [0] * len(places)
        self._waiting: dict[int, list[tuple[int, int, pa.Array]]] = {}
        self._rows = [0] * len(wanted)
        self._bytes = 0
        self._hits: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, job: int, keys: pa.Array) -> None:
        """Add the next keys of a job."""
        group, _, is_log = self._places[job]
        waiting = self._waiting.setdefault(group, [])
        waiting.append((job, UNKNOWN_ROW if is_log else self._read[job], keys))
        self._read[job] += len(keys)
        self._rows[group] += len(keys)
        self._bytes += keys.nbytes
        if self._rows[group] >= max(_AT_ONCE, _TIMES * len(self._wanted[group].keys)):
            self._match(group)
        elif self._bytes > self._most_bytes:
            for other in list(self._waiting):
                self._match(other)

    def finish(self) -> KeyLookupResult:
        """Match the waiting keys, and return all matches."""
        for group in list(self._waiting):
            self._match(group)
        return deduplicate([KeyLookupResult(*hits) for hits in self._hits])

    def _match(self, group: int) -> None:
        """Match the waiting keys of one request."""
        waiting = self._waiting.pop(group)
        self._rows[group] = 0
        keys = pa.chunked_array([each[2] for each in waiting], pa.string())
        self._bytes -= sum(each[2].nbytes for each in waiting)
        found = pc.index_in(keys, value_set=self._wanted[group].keys)
        at = np.concatenate([to_numbers(chunk, -1) for chunk in found.chunks])
        hits = np.flatnonzero(at >= 0)
        if not len(hits):
            return
        # ``piece``: the number of the waiting batch that contains a hit; it leads to the hit's slice and row.
        starts = np.cumsum([0, *(len(each[2]) for each in waiting)])
        piece = np.searchsorted(starts, hits, side="right") - 1
        first = np.array([each[1] for each in waiting])[piece]
        slices = np.array([self._places[each[0]][1] for each in waiting])[piece]
        rows = np.where(first == UNKNOWN_ROW, UNKNOWN_ROW, first + hits - starts[piece])
        self._hits.append((np.full(len(hits), group), at[hits].astype(np.int64), slices, rows))


def deduplicate(hits: Sequence[KeyLookupResult]) -> KeyLookupResult:
    """Return sorted results without repeats: a log's entry counts only if the slice's base file lacks the key."""
    if not hits:
        none = np.empty(0, np.int64)
        return KeyLookupResult(none, none, none, none)
    columns = zip(*((each.groups, each.keys, each.slices, each.rows) for each in hits), strict=True)
    groups, keys, slices, rows = map(np.concatenate, columns)
    # Entries of logs sort behind those of the base file, so that they are repeats if the base file has the key.
    last = np.where(rows == UNKNOWN_ROW, np.iinfo(np.int64).max, rows)
    order = np.lexsort((last, slices, keys, groups))
    found = KeyLookupResult(groups, keys, slices, rows).take(order)
    return found.take(np.flatnonzero(~found.find_repeats() | (found.rows != UNKNOWN_ROW)))


class StoredKeyFacts:
    """Finds the base files that may contain keys, by the metadata table of a snapshot.

    The facts are ranges and bloom filters, as in ``KeyFilter``, which reads them from footers (Hudi
    ``HoodieBloomIndex`` with ``hoodie.bloom.index.use.metadata``). A file without facts in the metadata table may
    contain any key.
    """

    def __init__(self, snapshot: Snapshot, options: Mapping[str, str]) -> None:
        self._snapshot = snapshot
        self._options = options

    def find_holders(self, keys: KeyFilter, slices: Sequence[FileSlice]) -> Mask:
        """Return a mask of the slices with a base file that may contain one of the keys.

        If there are few slices, the metadata table is not opened.

        Raises:
            CorruptFileError, FileMissingError: the metadata table is damaged.
            StorageError: the store refused.
        """
        holders = np.array([each.base_file is not None for each in slices], bool)
        config = self._snapshot.config
        if not config.populate_meta_fields:  # Java stores no keys in the facts of such a table
            return holders
        for partition, check in ((COLUMN_STATS, self._check_ranges), (BLOOM_FILTERS, self._check_blooms)):
            if partition in config.metadata_partitions and holders.sum() > _FEW:
                view = open_metadata_view(self._snapshot, self._options)
                holders = holders if view is None else check(view, keys, slices, holders)
        return holders

    def _check_ranges(self, view: MetadataView, keys: KeyFilter, slices: Sequence[FileSlice], holders: Mask) -> Mask:
        """Drop base files whose range includes none of the keys."""
        at = np.flatnonzero(holders)
        column = index_keys.encode_names([RECORD_KEY_FIELD])[0].as_py()
        named = index_keys.make_column_keys(repeat_value(column, pa.string(), len(at)), *_encode_files(slices, at))
        found = view.read_prefixes(COLUMN_STATS, _choose_prefixes(slices, at), [STATISTICS_COLUMN])
        if not found.num_rows:
            return holders
        statistics = read_trusted_ranges(join_chunks(found[STATISTICS_COLUMN]), pa.string(), of_partitions=False)
        place = index_in(named, value_set=join_chunks(found[KEY]))
        may_hold = keys.may_be_between(take(statistics.least, place), take(statistics.greatest, place))
        kept = holders.copy()
        kept[at] = may_hold & ~to_booleans(take(from_numpy(statistics.no_rows), place))
        return kept

    def _check_blooms(self, view: MetadataView, keys: KeyFilter, slices: Sequence[FileSlice], holders: Mask) -> Mask:
        """Drop base files whose bloom filter contains none of the keys."""
        if len(keys) > _MOST_KEYS:
            return holders
        at = np.flatnonzero(holders)
        named = index_keys.make_bloom_keys(*_encode_files(slices, at))
        kept = holders.copy()
        for start in range(0, len(at), _BLOOMS_AT_ONCE):
            wanted = named.slice(start, _BLOOMS_AT_ONCE)
            found = view.read_keys(BLOOM_FILTERS, wanted.to_pylist(), [BLOOM_COLUMN])
            places = to_numbers(index_in(join_chunks(found[KEY]), value_set=wanted))
            for place, bloom in zip(places.tolist(), found[BLOOM_COLUMN].to_pylist(), strict=True):
                facts = {BLOOM_KEY.encode(): bloom["bloomFilter"], BLOOM_TYPE_KEY.encode(): bloom["type"].encode()}
                kept[at[start + place]] = keys.may_hold(facts, _MANY_ROWS)
        return kept


def _choose_prefixes(slices: Sequence[FileSlice], at: npt.NDArray[np.int64]) -> list[str]:
    """Return the prefixes of the statistics of record keys in files."""
    partitions = {slices[each].partition_path for each in at}
    if len(partitions) > _MOST_PREFIXES:
        return index_keys.make_column_prefixes([RECORD_KEY_FIELD])
    return index_keys.make_column_partition_prefixes([RECORD_KEY_FIELD], sorted(partitions))


def _encode_files(slices: Sequence[FileSlice], at: npt.NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """Return the partitions and the names of base files as parts of keys."""
    paths = [slices[each].partition_path for each in at]
    names = [base.name for each in at if (base := slices[each].base_file) is not None]
    known = dict.fromkeys(paths)
    parts = dict(zip(known, index_keys.encode_partitions(known).to_pylist(), strict=True))
    return pa.array([parts[path] for path in paths], pa.string()), index_keys.encode_file_names(names)
