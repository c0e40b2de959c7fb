"""Find the locations of records: the file slice and row of each record's key (Hudi ``HoodieRecordLocation``).

A key in several file groups has a location in each. With ``every_row``, a key that a base file repeats has a location
for each row. So an update or delete reaches every copy, as in Java, whose indexes join keys with the keys of files. A
location whose log deleted the key counts only if the key has no other location.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.writer.index.key_lookup import UNKNOWN_ROW, KeyLookup, KeyLookupRequest, KeyLookupResult
from hoodie_py.writer.records import TaggedRecords, WriteRecords

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class RecordLocations:
    """The locations of records.

    Attributes:
        slices: the numbered file slices.
        slice_numbers: int64 per entry: number of the file slice, -1 for none.
        rows: int64 per entry: row number in the slice's base file, below 0 if unknown.
        record_numbers: int64, rising: number of each entry's record. A record whose key is in several file groups has
            an entry for each. None if every record has one entry.
    """

    slices: tuple[FileSlice, ...]
    slice_numbers: np.ndarray
    rows: np.ndarray
    record_numbers: np.ndarray | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[RecordLocations], counts: Sequence[int]) -> RecordLocations:
        """Concatenate the locations of runs of records. ``counts``: the number of records in each run."""
        slices: list[FileSlice] = []
        at, of, first = [], [], 0
        for part, count in zip(parts, counts, strict=True):
            at.append(np.where(part.slice_numbers == NOWHERE, NOWHERE, part.slice_numbers + len(slices)))
            of.append(first + (np.arange(count) if part.record_numbers is None else part.record_numbers))
            slices.extend(part.slices)
            first += count
        none = np.empty(0, np.int64)
        rows = np.concatenate([none, *(part.rows for part in parts)])
        single = all(part.record_numbers is None for part in parts)
        return cls(tuple(slices), np.concatenate([none, *at]), rows, None if single else np.concatenate([none, *of]))

    def take(self, records: np.ndarray) -> RecordLocations:
        """Return the locations of some records; each record has one."""
        return RecordLocations(self.slices, self.slice_numbers[records], self.rows[records])

    def expand(self, records: WriteRecords) -> tuple[WriteRecords, RecordLocations]:
        """Repeat each record for each of its locations; return the records and one location for each."""
        if self.record_numbers is None:
            return records, self
        return records.take(from_numpy(self.record_numbers)), RecordLocations(
            self.slices, self.slice_numbers, self.rows
        )

    def tag_records(self, records: WriteRecords) -> TaggedRecords:
        """Tag records with their locations; a record with several locations is repeated."""
        if self.record_numbers is not None:
            repeated, single = self.expand(records)
            return single.tag_records(repeated)
        file_ids = pa.array([each.file_id for each in self.slices], pa.string())
        bases = [None if each.base_file is None else each.base_file.instant for each in self.slices]
        missing = self.slice_numbers == NOWHERE
        in_slice = from_numpy(np.where(missing, 0, self.slice_numbers), missing)
        in_base = from_numpy(np.where(missing, 0, self.slice_numbers), missing | (self.rows == UNKNOWN_ROW))
        return TaggedRecords(
            records, file_ids.take(in_slice), pa.array(bases, pa.string()).take(in_base), self.rows.astype(np.int64)
        )


def choose_live_locations(
    found: KeyLookupResult,
    wanted: Sequence[KeyLookupRequest],
    lookup: KeyLookup,
    *,
    only_alive: bool,
    every_row: bool = False,
) -> KeyLookupResult:
    """Choose the locations that count: all in which a key is alive, or one for a key that is alive nowhere.

    ``only_alive``: whether keys that a log deleted are dropped; else such a key belongs to its newest file.
    ``every_row``: whether each row is a location of its own, as logs with row numbers distinguish rows of one key.
    """
    if not every_row:
        found = found.deduplicate_by_slice()
    if not len(found.keys):
        return found
    starts = np.ones(len(found.keys), bool)
    starts[1:] = (np.diff(found.keys) != 0) | (np.diff(found.groups) != 0)
    pair = np.cumsum(starts) - 1
    doubtful = np.bincount(pair)[pair] > 1
    if only_alive:
        doubtful[:] = True
    living = _find_living(found, wanted, lookup, doubtful)
    if only_alive:
        return found.take(np.flatnonzero(living))
    # Within a pair of request and key, the last entry in this order is alive if any is, and the newest such entry.
    order = np.lexsort((_rank_ages(found, wanted), living, pair))
    newest = np.ones(len(order), bool)
    newest[:-1] = np.diff(pair[order]) != 0
    chosen = living.copy()
    chosen[order[newest]] = True
    return found.take(np.flatnonzero(chosen))


def _find_living(
    found: KeyLookupResult, wanted: Sequence[KeyLookupRequest], lookup: KeyLookup, doubtful: np.ndarray
) -> np.ndarray:
    """Return a mask of the living entries; only ``doubtful`` ones are checked by a merged read."""
    living = np.ones(len(found.keys), bool)
    at = np.flatnonzero(doubtful)
    if not len(at):
        return living
    # One merged read for each file slice: sort the entries by slice and cut where the slice changes.
    order = at[np.lexsort((found.slices[at], found.groups[at]))]
    cuts = np.flatnonzero((np.diff(found.groups[order]) != 0) | (np.diff(found.slices[order]) != 0)) + 1
    for entries in np.split(order, cuts):
        group = wanted[int(found.groups[entries[0]])]
        file_slice = group.slices[int(found.slices[entries[0]])]
        if file_slice.log_files:
            distinct, codes = np.unique(found.keys[entries], return_inverse=True)
            living[entries] = lookup.find_alive(file_slice, group.keys.take(from_numpy(distinct)))[codes.reshape(-1)]
    return living


def _rank_ages(found: KeyLookupResult, wanted: Sequence[KeyLookupRequest]) -> np.ndarray:
    """Return a number for each entry that rises with the base instant of its slice."""
    instants = sorted({each.base_instant for group in wanted for each in group.slices})
    rank = {instant: number for number, instant in enumerate(instants)}
    starts = np.cumsum([0, *(len(group.slices) for group in wanted)])
    ranks = np.array([rank[each.base_instant] for group in wanted for each in group.slices])
    return np.asarray(ranks[starts[found.groups] + found.slices])
