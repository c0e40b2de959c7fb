"""The record keys in base files, as far as a metadata table describes them: ranges, and bloom filters (Hudi
``HoodieBloomIndex`` with ``hoodie.bloom.index.use.metadata``).

Files that cannot contain a wanted key need not be opened. The facts are the ones of ``KeyFilter``, which reads them
from footers. A file without facts in the metadata table may contain any key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, index_in, join_chunks, repeat_value, take, to_booleans, to_numbers
from hoodie_py.formats.indexes.definitions import BLOOM_FILTERS, COLUMN_STATS
from hoodie_py.formats.indexes.keys import (
    encode_file_names,
    encode_names,
    encode_partitions,
    make_bloom_keys,
    make_column_keys,
    make_column_partition_prefixes,
    make_column_prefixes,
)
from hoodie_py.formats.indexes.ranges import read_trusted_ranges
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN, STATISTICS_COLUMN
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY
from hoodie_py.reader.base.key_filter import KeyFilter
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import KEY, MetadataView
from hoodie_py.table.snapshot import Snapshot

Mask = npt.NDArray[np.bool_]
_FEW = 16  # so many base files are opened faster than a metadata table
_BLOOMS_AT_ONCE = 64  # each may take half a megabyte
_MOST_KEYS = 1_000  # more keys are not looked up in the filters of unread files
_MANY_ROWS = 1 << 62  # stands for an unknown number of rows
_MOST_PREFIXES = 64  # partitions; for more, all of a column's statistics are read


class StoredKeyFacts:
    """Finds the base files that may contain keys, by the metadata table of a snapshot."""

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
        column = encode_names([RECORD_KEY_FIELD])[0].as_py()
        named = make_column_keys(repeat_value(column, pa.string(), len(at)), *_encode_files(slices, at))
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
        named = make_bloom_keys(*_encode_files(slices, at))
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
        return make_column_prefixes([RECORD_KEY_FIELD])
    return make_column_partition_prefixes([RECORD_KEY_FIELD], sorted(partitions))


def _encode_files(slices: Sequence[FileSlice], at: npt.NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """Return the partitions and the names of base files as parts of keys."""
    paths = [slices[each].partition_path for each in at]
    names = [base.name for each in at if (base := slices[each].base_file) is not None]
    known = dict.fromkeys(paths)
    parts = dict(zip(known, encode_partitions(known).to_pylist(), strict=True))
    return pa.array([parts[path] for path in paths], pa.string()), encode_file_names(names)
