"""Places of records: which file slice has the key of each, and in which row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.arrays import from_numpy
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.writer.key_lookup import UNKNOWN_ROW, Found, KeyLookup, Wanted
from hoodie_py.writer.write_records import TaggedRecords, WriteRecords

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Places:
    """Where records are.

    Attributes:
        slices: the file slices that places are numbers of.
        at: int64 per record: its file slice, -1 for none.
        rows: int64 per record: its row in the slice's base file, -1 where that is not known.
    """

    slices: tuple[FileSlice, ...]
    at: np.ndarray
    rows: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Places]) -> Places:
        """Join places of runs of records that follow each other."""
        slices: list[FileSlice] = []
        at = []
        for part in parts:
            at.append(np.where(part.at == NOWHERE, NOWHERE, part.at + len(slices)))
            slices.extend(part.slices)
        none = np.empty(0, np.int64)
        return cls(tuple(slices), np.concatenate([none, *at]), np.concatenate([none, *(part.rows for part in parts)]))

    def take(self, records: np.ndarray) -> Places:
        """Return the places of some records."""
        return Places(self.slices, self.at[records], self.rows[records])

    def tagged(self, records: WriteRecords) -> TaggedRecords:
        """Return records with their places."""
        file_ids = pa.array([each.file_id for each in self.slices], pa.string())
        bases = [None if each.base_file is None else each.base_file.instant for each in self.slices]
        missing = self.at == NOWHERE
        places = from_numpy(np.where(missing, 0, self.at), missing)
        in_base = from_numpy(np.where(missing, 0, self.at), missing | (self.rows == UNKNOWN_ROW))
        return TaggedRecords(
            records, file_ids.take(places), pa.array(bases, pa.string()).take(in_base), self.rows.astype(np.int64)
        )


def settled(found: Found, wanted: Sequence[Wanted], lookup: KeyLookup, *, only_alive: bool) -> Found:
    """Return one place for each key that was found.

    Args:
        found: what was found, by group and key.
        wanted: what was looked for.
        lookup: tells which keys are alive.
        only_alive: whether keys are left out that a log deleted. Else such a key belongs to its newest file.

    Raises:
        InvalidTableError: a key lives in two file groups.
    """
    if not len(found.keys):
        return found
    starts = np.ones(len(found.keys), bool)
    starts[1:] = (np.diff(found.keys) != 0) | (np.diff(found.groups) != 0)
    pair = np.cumsum(starts) - 1
    doubtful = np.bincount(pair)[pair] > 1
    if only_alive:
        doubtful[:] = True
    living = _living(found, wanted, lookup, doubtful)
    counts = np.bincount(pair[living], minlength=int(pair[-1]) + 1)
    if (counts > 1).any():
        _refuse(found, wanted, np.flatnonzero(living & (counts[pair] > 1)), pair)
    order = np.lexsort((_ages(found, wanted), living, pair))
    last = np.ones(len(order), bool)
    last[:-1] = np.diff(pair[order]) != 0
    chosen = order[last]
    return found.take(chosen[living[chosen]] if only_alive else chosen)


def _living(found: Found, wanted: Sequence[Wanted], lookup: KeyLookup, doubtful: np.ndarray) -> np.ndarray:
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
            living[entries] = lookup.alive(file_slice, group.keys.take(from_numpy(found.keys[entries])))
    return living


def _ages(found: Found, wanted: Sequence[Wanted]) -> np.ndarray:
    """Return numbers that rise with the instants of the slices found."""
    instants = sorted({each.base_instant for group in wanted for each in group.slices})
    rank = {instant: number for number, instant in enumerate(instants)}
    starts = np.cumsum([0, *(len(group.slices) for group in wanted)])
    ranks = np.array([rank[each.base_instant] for group in wanted for each in group.slices])
    return np.asarray(ranks[starts[found.groups] + found.slices])


def _refuse(found: Found, wanted: Sequence[Wanted], at: np.ndarray, pair: np.ndarray) -> None:
    same = at[pair[at] == pair[at[0]]]
    group = wanted[int(found.groups[same[0]])]
    places = [group.slices[int(number)] for number in found.slices[same]]
    raise InvalidTableError(
        "a record key lives in two file groups, so it is not known which of them an update belongs to",
        key=group.keys[int(found.keys[same[0]])].as_py(),
        file_groups=" ".join(each.file_id for each in places),
        partitions=" ".join(each.partition_path for each in places if each.partition_path) or None,
        hint="Remove the double record, for instance with Hudi's repair_deduplicate.",
    )
