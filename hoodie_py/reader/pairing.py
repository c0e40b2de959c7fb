"""Which log record each base row meets, whatever the size of the two.

A log folded in memory has one part: its keys are hashed and base keys run by, some at a time.  Of a log in many parts
each is paired in turn with the base rows whose keys fall into it; these are written to disk by parts first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from hoodie_py.reader.align import check_positions, find_keys, match_base, match_positions
from hoodie_py.reader.folded_log import FoldedLog
from hoodie_py.reader.spill import Spill
from hoodie_py.reader.spilled_log import join_to_size, split_by_part


def match_base_rows(
    folded: FoldedLog, base_keys: Iterable[pa.Array], base_rows: int, spill: Spill, *, again: bool = False
) -> np.ndarray:
    """Return for each base row the number of the log record it meets, -1 for none.

    A key that the base file holds more than once meets its log record on the first row only, as in Hudi's key-based
    buffer.

    Args:
        folded: the log.
        base_keys: the record keys of the base file in row order; not looked at where rows pair by position.
        base_rows: rows of the base file.
        spill: holds what is too large for memory.
        again: whether a log record meets every row that has its key.

    Raises:
        CorruptFileError: a position lies beyond the file's end.
        StorageError: the disk is full or fails.
    """
    if folded.positions is not None:
        return _match_by_position(folded, base_rows, spill)
    if len(folded.parts) == 1:
        return _match_one_part(folded, base_keys, base_rows, spill, again=again)
    return _match_part_by_part(folded, base_keys, base_rows, spill, again=again)


def _match_by_position(folded: FoldedLog, base_rows: int, spill: Spill) -> np.ndarray:
    positions = folded.positions or []
    if len(positions) == 1:
        return match_positions(positions[0], base_rows)
    at = spill.make_array(base_rows, np.int64, -1)
    for start, places in zip(folded.starts.tolist(), positions, strict=False):
        check_positions(places, base_rows)
        at[places] = np.arange(start, start + len(places))
    return at


def _match_one_part(
    folded: FoldedLog, base_keys: Iterable[pa.Array], base_rows: int, spill: Spill, *, again: bool
) -> np.ndarray:
    at = spill.make_array(base_rows, np.int64, -1)
    log_keys = folded.parts[0].keys
    met = None if again else np.zeros(len(log_keys), bool)
    done = 0
    for keys in _join_runs(base_keys, spill.budget.portion):
        at[done : done + len(keys)] = find_keys(keys, log_keys) if met is None else match_base(keys, log_keys, met)
        done += len(keys)
    return at


def _match_part_by_part(
    folded: FoldedLog, base_keys: Iterable[pa.Array], base_rows: int, spill: Spill, *, again: bool
) -> np.ndarray:
    partition = folded.partition
    assert partition is not None
    at = spill.make_array(base_rows, np.int64, -1)
    split_keys = split_by_part(
        spill,
        _number_rows(base_keys),
        lambda batch: partition.key_hash.assign_keys(batch.column("key"), partition.count),
        partition.count,
    )
    for start, number, part in zip(folded.starts.tolist(), partition.numbers, folded.parts, strict=False):
        met = None if again else np.zeros(len(part), bool)
        for batch in join_to_size(map(spill.read_copy, split_keys[number]), spill.budget.portion):
            keys = pa.chunked_array([batch.column("key")])
            found = find_keys(keys, part.keys) if met is None else match_base(keys, part.keys, met)
            hits = np.flatnonzero(found >= 0)
            at[batch.column("row").to_numpy()[hits]] = start + found[hits]
    return at


def _join_runs(base_keys: Iterable[pa.Array], size: int) -> Iterator[pa.ChunkedArray]:
    """Join keys that follow each other up to some bytes: log keys are hashed once for each run."""
    waiting: list[pa.Array] = []
    held = 0
    for keys in base_keys:
        if waiting and held + keys.nbytes > size:
            yield pa.chunked_array(waiting)
            waiting, held = [], 0
        waiting.append(keys)
        held += keys.nbytes
    if waiting:
        yield pa.chunked_array(waiting)


def _number_rows(base_keys: Iterable[pa.Array]) -> Iterator[pa.RecordBatch]:
    done = 0
    for keys in base_keys:
        rows = pa.array(np.arange(done, done + len(keys)))
        yield pa.RecordBatch.from_arrays([rows, keys], names=["row", "key"])
        done += len(keys)
