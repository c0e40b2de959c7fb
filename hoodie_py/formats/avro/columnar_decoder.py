"""Decode data blocks column by column, for many records at once.

NumPy's cost per column is about the same for one record as for some hundreds, so small blocks of the same schema are
decoded together. Large blocks are decoded in parts, so that little memory is needed besides the rows. Each record must
end where its length says (``columnar_cursor`` explains why that suffices); otherwise ``Misfit`` is raised, and
``faults`` finds the record.

``find_record_bounds`` first finds the records. Each is preceded by its length, so a record is found only through the
one before it: a slow loop in Python, unless many parts of the data are walked together in NumPy. Hudi's records start
alike (the first field is the commit time), so in each part a search for that start finds a position that looks like a
record. The first part of a block starts at a true record, and a walk that ends exactly at the start of the next part
proves that start. A part whose walk does not is walked again, record by record.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import repeat
from math import isqrt

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import make_batch_without_columns, make_empty_batch
from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.arrow_types import to_arrow_schema
from hoodie_py.formats.avro.binary import Data
from hoodie_py.formats.avro.columnar_cursor import Budget, Misfit, Places, Source
from hoodie_py.formats.avro.columnar_nested import TooManyItems, make_reader
from hoodie_py.formats.avro.columnar_output import JoinedParts
from hoodie_py.formats.avro.columnar_values import LaneReader
from hoodie_py.formats.avro.schema import Record

LENGTH_SIZE = 4

_LENGTH = struct.Struct(">I")
_FEW_RECORDS = 128
_RECORDS_COMPARED = 4
_SHORTEST_BEGINNING = 4
_LONGEST_BEGINNING = 8  # so that the times of several commits still begin alike
_WINDOW = 3  # where a part's first record is searched for, in average records
_FEWEST_ROUNDS, _MOST_ROUNDS, _ROUNDS_RATIO = 8, 48, 3
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Stretch:
    """Adjacent records: ``start`` is the position of the first one's length, ``stop`` the end of the last one."""

    start: int
    stop: int
    count: int


def find_record_bounds(data: Data, stretches: Sequence[Stretch]) -> tuple[Places, Places]:
    """Return where each record starts and ends, over all stretches.

    ``data`` has at least four bytes after every stretch, and each stretch has at least one record.

    Raises Misfit if the records of a stretch do not fill it exactly.
    """
    total = sum(stretch.count for stretch in stretches)
    rounds = min(max(_FEWEST_ROUNDS, isqrt(total) // _ROUNDS_RATIO), _MOST_ROUNDS)
    heads = [_find_heads(data, stretch, rounds) for stretch in stretches] if total >= _FEW_RECORDS else []
    # With so few parts found, most records would be walked one by one again.
    if sum(map(len, heads)) * rounds <= total // 4:
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
    """Find positions that look like records, ascending; the first is the stretch's start."""
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
    """Walk all parts together, at most ``most`` records in each; return each stretch's starts and its end."""
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


RECORDS_TOGETHER = 1 << 14  # of small blocks

_BYTES_AT_ONCE = 1 << 24
_BYTES_TOGETHER = 1 << 23
_CELLS_PER_BYTE = 4
_FREE_CELLS = 1 << 22
_LARGEST_ARRAY = 1 << 23


@dataclass(frozen=True, slots=True)
class Plan:
    """The readers of a record's fields in order, each with whether its column is wanted, and the wanted columns."""

    readers: tuple[tuple[LaneReader, bool], ...]
    schema: pa.Schema


@lru_cache(maxsize=64)
def make_plan(record: Record, names: frozenset[str] | None) -> Plan:
    """Choose the readers of some columns; None for all."""
    arrow = to_arrow_schema(record)
    wanted = [names is None or part.name in names for part in record.fields]
    readers = [make_reader(part.type) for part in record.fields]
    fields = [column for column, want in zip(arrow, wanted, strict=True) if want]
    return Plan(tuple(zip(readers, wanted, strict=True)), pa.schema(fields))


@dataclass(frozen=True, slots=True)
class Block:
    """A data block: its content, where the first record's length is in it, and the number of records."""

    content: memoryview
    start: int
    count: int


def make_budget(size: int) -> Budget:
    """Return the budget for decoding blocks of ``size`` bytes."""
    return Budget(max(_FREE_CELLS, _CELLS_PER_BYTE * size))


class JoinedBlocks:
    """Blocks of the same schema in one piece: copied, unless they are in one Arrow buffer already.

    ``plan_groups`` says how many to join. ``budget`` limits the cells that they may take beyond their bytes; it is
    passed if other blocks share it.

    Raises UnsupportedFeatureError if they have more bytes than 32 bits can count.
    """

    def __init__(self, blocks: Sequence[Block], budget: Budget | None = None) -> None:
        _keep_freed_memory()
        sizes = [len(block.content) for block in blocks]
        self.source = Source([block.content for block in blocks], budget or make_budget(sum(sizes)))
        self.counts = tuple(block.count for block in blocks)
        self._firsts = [block.start for block in blocks]
        self._bounds = [(start, start + size) for start, size in zip(self.source.starts, sizes, strict=True)]

    @property
    def contents(self) -> list[memoryview]:
        """The blocks' contents."""
        return [self.source.raw[start:stop] for start, stop in self._bounds]

    def find_stretches(self) -> list[Stretch]:
        """Return the stretch of each block with records. Raises Misfit if a block without records has bytes."""
        found: list[Stretch] = []
        for first, count, (start, stop) in zip(self._firsts, self.counts, self._bounds, strict=True):
            if count:
                found.append(Stretch(start + first, stop, count))
            elif start + first != stop:
                raise Misfit
        return found


def decode_in_lanes(blocks: JoinedBlocks, plan: Plan) -> pa.RecordBatch:
    """Decode blocks by a plan; return the rows of all blocks in order.

    Raises Misfit if one of the blocks is damaged, or unfolds to too many values; from a HoodieError if that says more.
    """
    stretches = blocks.find_stretches()
    if not stretches:
        return make_empty_batch(plan.schema)
    try:
        starts, ends = find_record_bounds(blocks.source.raw, stretches)
    except (IndexError, struct.error):
        raise Misfit from None
    return _decode_bounds(blocks.source, starts, ends, plan)


@cache
def _keep_freed_memory() -> None:
    """Make glibc keep the memory of freed NumPy arrays for new arrays.

    By default glibc takes every array of more than 128 KB from the system and returns it, page by page. Once a larger
    block was freed, it raises that threshold. The block here is never written to, so it takes no real memory.
    """
    np.empty(_LARGEST_ARRAY, np.uint8)


def plan_groups(blocks: Sequence[Block]) -> list[int]:
    """Split blocks into groups of a good size to decode together; return the number of blocks in each."""
    sizes: list[int] = []
    blocks_in = records = size = 0
    for block in blocks:
        if blocks_in and (records + block.count > RECORDS_TOGETHER or size + len(block.content) > _BYTES_TOGETHER):
            sizes.append(blocks_in)
            blocks_in = records = size = 0
        blocks_in += 1
        records += block.count
        size += len(block.content)
    return [*sizes, blocks_in] if blocks_in else sizes


def decode_places(content: memoryview | bytes, starts: Places, ends: Places, plan: Plan) -> pa.RecordBatch:
    """Decode records at known places of some bytes, ascending and without overlap.

    Raises Misfit as ``decode_in_lanes``.
    """
    if not len(starts):
        return make_empty_batch(plan.schema)
    _keep_freed_memory()
    source = Source([content], make_budget(len(content)))
    first = source.starts[0]
    return _decode_bounds(source, starts + first, ends + first, plan)


def _decode_bounds(source: Source, starts: Places, ends: Places, plan: Plan) -> pa.RecordBatch:
    try:
        return _decode_all(source, starts, ends, plan)
    except HoodieError as error:
        raise Misfit from error
    except (IndexError, pa.ArrowInvalid):
        raise Misfit from None


def _decode_all(source: Source, starts: Places, ends: Places, plan: Plan) -> pa.RecordBatch:
    cuts = _cut_into_parts(starts, ends, source.records_at_once)
    source.in_parts = len(cuts) > 1
    parts = [] if source.in_parts else _decode_part(source, starts, ends, plan)
    if len(parts) == 1:
        return _make_batch(plan.schema, len(starts), parts[0])
    joined = JoinedParts(plan.schema, len(starts), source.content)
    for part in parts:
        joined.add(part)
    if source.in_parts:
        for cut in cuts:
            _add_part(joined, source, starts[cut], ends[cut], plan)
    return _make_batch(plan.schema, len(starts), joined.finish())


def _add_part(joined: JoinedParts, source: Source, starts: Places, ends: Places, plan: Plan) -> None:
    """Decode a part and copy it; its memory is free when this returns, and is reused for the next part."""
    for part in _decode_part(source, starts, ends, plan):
        joined.add(part)


def _cut_into_parts(starts: Places, ends: Places, most: int) -> list[slice]:
    """Cut records into parts that are decoded in turn, each of about ``most`` records, and bounded in bytes."""
    at_once = _count_at_once(len(starts), most)
    cuts: list[slice] = []
    first = 0
    while first < len(starts):
        within = int(np.searchsorted(ends, starts[first] + _BYTES_AT_ONCE, "right"))
        last = min(first + at_once, max(within, first + 1))
        cuts.append(slice(first, last))
        first = last
    return cuts


def _count_at_once(records: int, most: int) -> int:
    """Return how many records to decode at once: equal parts, none of them small, as each part has a fixed cost."""
    parts = max(1, (records + most // 2) // most)
    return -(-records // parts)


def _decode_part(source: Source, starts: Places, ends: Places, plan: Plan) -> list[list[pa.Array]]:
    """Decode records, in halves if they contain too many items; return the columns of each half."""
    try:
        return [_decode_records(source, starts, ends, plan)]
    except TooManyItems:
        half = len(starts) // 2
        if not half:
            return [_decode_large_record(source, starts, ends, plan)]
    return _decode_part(source, starts[:half], ends[:half], plan) + _decode_part(
        source, starts[half:], ends[half:], plan
    )


def _decode_large_record(source: Source, starts: Places, ends: Places, plan: Plan) -> list[pa.Array]:
    """Decode one record that alone has too many items: their number is only limited by its bytes."""
    most, source.most_items = source.most_items, source.content
    try:
        return _decode_records(source, starts, ends, plan)
    finally:
        source.most_items = most


def _decode_records(source: Source, starts: Places, ends: Places, plan: Plan) -> list[pa.Array]:
    places = starts.copy()
    columns: list[pa.Array] = []
    for reader, wanted in plan.readers:
        if wanted:
            columns.append(reader.read(source, places, None))
        else:
            reader.skip(source, places, None)
    if not np.array_equal(places, ends):
        raise Misfit
    return columns


def _make_batch(schema: pa.Schema, rows: int, columns: list[pa.Array]) -> pa.RecordBatch:
    if not columns:
        return make_batch_without_columns(rows)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
