"""Find where the records of data blocks start and end.

Every record has its length before it, so a record is found only through the one before: a loop in Python, unless many
parts of the data are walked together. Hudi's records start alike (the first field is the commit time), so in each part
a search for that start finds a position that looks like a record. From there all parts are walked together in NumPy.

The first part of a block starts at a true record. Where the walk of a part ends exactly at the start of the next part,
that start is proven to be a true record. A part whose start is not proven is walked again, record by record.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from math import isqrt

import numpy as np

from hoodie_py.formats.avro.binary import Data
from hoodie_py.formats.avro.columnar_cursor import Misfit, Places

LENGTH_SIZE = 4

_LENGTH = struct.Struct(">I")
_FEW_RECORDS = 128
_RECORDS_COMPARED = 4
_SHORTEST_BEGINNING = 4
_LONGEST_BEGINNING = 8  # so that the times of several commits still begin alike
_WINDOW = 3  # in average records: where a part's first record is looked for
_FEWEST_ROUNDS, _MOST_ROUNDS, _ROUNDS_RATIO = 8, 48, 3
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records that follow each other: the first one's length is at ``start``, the last one ends at ``stop``."""

    start: int
    stop: int
    count: int


def find_record_bounds(data: Data, stretches: Sequence[Stretch]) -> tuple[Places, Places]:
    """Return where each record starts and ends, over all stretches.

    ``data`` has at least four bytes behind every stretch, and each stretch has at least one record.

    Raises Misfit if the records of a stretch do not fill it exactly.
    """
    total = sum(stretch.count for stretch in stretches)
    rounds = min(max(_FEWEST_ROUNDS, isqrt(total) // _ROUNDS_RATIO), _MOST_ROUNDS)
    heads = [_find_heads(data, stretch, rounds) if total >= _FEW_RECORDS else [stretch.start] for stretch in stretches]
    if sum(map(len, heads)) * rounds < total // 4:
        chains = [_walk(data, stretch.start, stretch.stop) for stretch in stretches]
    else:
        chains = _walk_parts(data, stretches, heads, _PATIENCE * rounds)
    for stretch, chain in zip(stretches, chains, strict=True):
        if len(chain) != stretch.count + 1 or chain[-1] != stretch.stop:
            raise Misfit
    starts = np.concatenate([chain[:-1] for chain in chains])
    return starts + LENGTH_SIZE, np.concatenate([chain[1:] for chain in chains])


def _walk(data: Data, pos: int, stop: int) -> Places:
    """Walk records one by one up to ``stop``; return the start of each and the end of the last one."""
    found = [pos]
    append = found.append
    length_at = _LENGTH.unpack_from
    while pos < stop:
        pos += length_at(data, pos)[0] + LENGTH_SIZE
        append(pos)
    return np.array(found, np.int64)


def _find_heads(data: Data, stretch: Stretch, rounds: int) -> list[int]:
    """Find positions that look like records, in rising order; the first is the stretch's start."""
    pos = stretch.start
    beginnings: list[bytes] = []
    for _ in repeat(None, min(_RECORDS_COMPARED, stretch.count)):
        if pos >= stretch.stop:
            raise Misfit
        beginnings.append(bytes(data[pos + LENGTH_SIZE : pos + LENGTH_SIZE + _LONGEST_BEGINNING]))
        pos += _LENGTH.unpack_from(data, pos)[0] + LENGTH_SIZE
    beginning = _find_common_beginning(beginnings)
    if len(beginning) < _SHORTEST_BEGINNING:
        return [stretch.start]
    average = max((stretch.stop - stretch.start) // stretch.count, LENGTH_SIZE)
    window = _WINDOW * average
    guesses = range(stretch.start + rounds * average, stretch.stop - window, rounds * average)
    find = re.compile(re.escape(beginning)).search
    found = map(find, repeat(data), guesses, range(guesses.start + window, stretch.stop, guesses.step))
    return [stretch.start, *(place.start() - LENGTH_SIZE for place in found if place is not None)]


def _find_common_beginning(texts: Sequence[bytes]) -> bytes:
    low, high = min(texts), max(texts)
    for place, byte in enumerate(low):
        if high[place] != byte:
            return low[:place]
    return low


def _walk_parts(data: Data, stretches: Sequence[Stretch], heads: Sequence[list[int]], most: int) -> list[Places]:
    """Walk all parts together, at most ``most`` records in each; return the chain of each stretch."""
    firsts = np.concatenate([np.array(parts, np.int64) for parts in heads])
    targets = np.concatenate([[*parts[1:], stretch.stop] for parts, stretch in zip(heads, stretches, strict=True)])
    lengths = np.ndarray((len(data) - LENGTH_SIZE + 1,), ">u4", data, strides=(1,))
    beyond = targets + 1  # a walk that passes its target stops here, so it cannot leave the data
    tracks = [firsts]
    for number in range(most):
        last = tracks[-1]
        following = last + lengths[last]
        following += LENGTH_SIZE
        tracks.append(np.minimum(following, beyond, out=following))
        if number % 4 == 3 and (following >= targets).all():
            break
    table = np.stack(tracks, axis=1)
    inside = table < targets[:, None]
    steps = np.count_nonzero(inside, axis=1)
    proven = table[np.arange(len(table)), np.minimum(steps, table.shape[1] - 1)] == targets
    chains: list[Places] = []
    done = 0
    for stretch, parts in zip(stretches, heads, strict=True):
        rows = slice(done, done + len(parts))
        done += len(parts)
        if proven[rows].all():
            chains.append(np.append(table[rows][inside[rows]], stretch.stop))
        else:
            chains.append(
                _walk_unproven_parts(data, stretch, parts, table[rows], steps[rows].tolist(), proven[rows].tolist())
            )
    return chains


def _walk_unproven_parts(
    data: Data, stretch: Stretch, heads: list[int], table: Places, steps: list[int], proven: list[bool]
) -> Places:
    """Join the proven walks, and walk the other parts again record by record."""
    chain: list[Places] = []
    pos = stretch.start
    for part, (head, target) in enumerate(zip(heads, [*heads[1:], stretch.stop], strict=True)):
        if pos == head and proven[part]:
            chain.append(table[part, : steps[part]])
            pos = target
        else:
            walked = _walk(data, pos, target)
            chain.append(walked[:-1])
            pos = int(walked[-1])
        if pos > stretch.stop:
            raise Misfit
    return np.concatenate([*chain, [pos]])
