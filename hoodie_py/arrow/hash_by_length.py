"""Hash many strings with NumPy: strings of equal length form the rows of one byte table and are hashed together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_CHUNK_BYTES = 1 << 22
_Hash = TypeVar("_Hash", np.uint32, np.uint64)


def hash_by_length(
    texts: pa.Array,
    kind: type[_Hash],
    hash_one_length: Callable[[npt.NDArray[np.uint8], int], npt.NDArray[_Hash]],
) -> npt.NDArray[_Hash]:
    """Return the hash of each string's UTF-8 bytes; a null counts as an empty string.

    ``hash_one_length(table, length)`` hashes strings of one length, given as the rows of a table of bytes.
    """
    texts = texts.cast(pa.large_string()).fill_null("")
    _, offset_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(texts) + 1, 8 * texts.offset)
    base, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    data = np.frombuffer(data_buffer, np.uint8, size, base) if size else np.empty(0, np.uint8)
    starts = offsets[:-1] - base
    lengths = offsets[1:] - offsets[:-1]
    order = np.argsort(lengths, kind="stable")
    hashes = np.empty(len(texts), kind)
    ordered: npt.NDArray[np.int64] = lengths[order]
    bounds = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(order)]
    for first, beyond in itertools.pairwise(bounds):
        length = int(ordered[first]) if beyond > first else 0
        # Bounds the memory of a table.
        step = max(1, _CHUNK_BYTES // (length + 1))
        for at in range(first, beyond, step):
            places = order[at : min(at + step, beyond)]
            hashes[places] = hash_one_length(data[starts[places][:, None] + np.arange(length)], length)
    return hashes
