"""Divide the records of a write into shards that can be combined and looked up one after the other.

A shard contains all records whose keys hash to it, so what is true of a key within its shard is true within the whole
write. With a bucket index a shard has whole buckets, because a bucket's first record begins its file group.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.arrow.hashes import compute_java_hashes
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.bucket_locations import assign_buckets
from hoodie_py.writer.index_settings import IndexSettings
from hoodie_py.writer.records import WriteRecords

_BITS = 31
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: Fibonacci hashing mixes the upper bits


def find_shards(records: WriteRecords, snapshot: Snapshot, index: IndexSettings, count: int) -> npt.NDArray[np.int64]:
    """Return the number of each record's shard, below ``count``; errors as for ``assign_buckets``."""
    if not index.is_bucket or records.partition_paths is None:
        return spread_over_shards(compute_java_hashes(join_chunks(records.keys)), count)
    hashes = compute_java_hashes(join_chunks(records.partition_paths))
    for part in assign_buckets(snapshot, records, index):
        hashes[slice(None) if part.members is None else part.members] += part.numbers.astype(np.uint32)
    return spread_over_shards(hashes, count)


def spread_over_shards(hashes: np.ndarray, count: int) -> npt.NDArray[np.int64]:
    """Return the number of each hash's shard."""
    return (mix_hashes(hashes, _BITS) % np.uint64(count)).astype(np.int64)


def mix_hashes(hashes: np.ndarray, bits: int) -> npt.NDArray[np.uint64]:
    """Return evenly spread numbers of ``bits`` bits for hashes that may not be evenly spread."""
    return hashes.astype(np.uint64) * _GOLDEN >> np.uint64(64 - bits)
