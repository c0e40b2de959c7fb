"""Places of records: which file slice has the key of each, and in which row.

A key that lives in several file groups has all of these places, and with ``every_row`` all rows of a base file that
has it more than once: Java's indexes join keys with what files have, so that an update or a delete meets every copy.
Only where a log has deleted a key its place does not count beside others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.formats.arrays import from_numpy
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.writer.key_lookup import UNKNOWN_ROW, KeyLookup, KeyLookupRequest, KeyLookupResult
from hoodie_py.writer.write_records import TaggedRecords, WriteRecords

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class RecordLocations:
    """Where records are.

    Attributes:
        slices: the file slices that places are numbers of.
        at: int64 per record: its file slice, -1 for none.
        rows: int64 per record: its row in the slice's base file, below 0 where that is not known.
        of: int64, rising: the number of the record that each entry is about; None where there is one entry a record. A
            record whose key lives in several file groups has an entry for each.
    """

    slices: tuple[FileSlice, ...]
    at: np.ndarray
    rows: np.ndarray
    of: np.ndarray | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[RecordLocations], counts: Sequence[int]) -> RecordLocations:
        """Join places of runs of records that follow each other, so many records a run."""
        slices: list[FileSlice] = []
        at, of, first = [], [], 0
        for part, count in zip(parts, counts, strict=True):
            at.append(np.where(part.at == NOWHERE, NOWHERE, part.at + len(slices)))
            of.append(first + (np.arange(count) if part.of is None else part.of))
            slices.extend(part.slices)
            first += count
        none = np.empty(0, np.int64)
        rows = np.concatenate([none, *(part.rows for part in parts)])
        single = all(part.of is None for part in parts)
        return cls(tuple(slices), np.concatenate([none, *at]), rows, None if single else np.concatenate([none, *of]))

    def take(self, records: np.ndarray) -> RecordLocations:
        """Return the places of some records; each record has one."""
        return RecordLocations(self.slices, self.at[records], self.rows[records])

    def expand(self, records: WriteRecords) -> tuple[WriteRecords, RecordLocations]:
        """Return records once for each of their places, and places of which each record has one."""
        if self.of is None:
            return records, self
        return records.take(from_numpy(self.of)), RecordLocations(self.slices, self.at, self.rows)

    def tag_records(self, records: WriteRecords) -> TaggedRecords:
        """Return records with their places: those that have several come once for each."""
        if self.of is not None:
            records, places = self.expand(records)
            return places.tag_records(records)
        file_ids = pa.array([each.file_id for each in self.slices], pa.string())
        bases = [None if each.base_file is None else each.base_file.instant for each in self.slices]
        missing = self.at == NOWHERE
        places = from_numpy(np.where(missing, 0, self.at), missing)
        in_base = from_numpy(np.where(missing, 0, self.at), missing | (self.rows == UNKNOWN_ROW))
        return TaggedRecords(
            records, file_ids.take(places), pa.array(bases, pa.string()).take(in_base), self.rows.astype(np.int64)
        )


def choose_live_locations(
    found: KeyLookupResult,
    wanted: Sequence[KeyLookupRequest],
    lookup: KeyLookup,
    *,
    only_alive: bool,
    every_row: bool = False,
) -> KeyLookupResult:
    """Return the places of keys that were found: all in which a key is alive, or one for a key that is nowhere alive.

    Args:
        found: what was found, by group and key.
        wanted: what was looked for.
        lookup: tells which keys are alive.
        only_alive: whether keys are left out that a log deleted. Else such a key belongs to its newest file.
        every_row: whether each row is a place, for logs that tell rows of one key apart by their number.
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
    order = np.lexsort((_rank_ages(found, wanted), living, pair))
    newest = np.ones(len(order), bool)
    newest[:-1] = np.diff(pair[order]) != 0
    chosen = living.copy()
    chosen[order[newest]] = True
    return found.take(np.flatnonzero(chosen))


def _find_living(
    found: KeyLookupResult, wanted: Sequence[KeyLookupRequest], lookup: KeyLookup, doubtful: np.ndarray
) -> np.ndarray:
    living = np.ones(len(found.keys), bool)
    at = np.flatnonzero(doubtful)
    if not len(at):
        return living
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
    """Return numbers that rise with the instants of the slices found."""
    instants = sorted({each.base_instant for group in wanted for each in group.slices})
    rank = {instant: number for number, instant in enumerate(instants)}
    starts = np.cumsum([0, *(len(group.slices) for group in wanted)])
    ranks = np.array([rank[each.base_instant] for group in wanted for each in group.slices])
    return np.asarray(ranks[starts[found.groups] + found.slices])
