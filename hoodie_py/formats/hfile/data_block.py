"""Finds the entries in a data block of an HFile: the place of each key and each value (Hudi ``HFileDataBlock``).

Keys and values stay in the block's bytes, and their places are NumPy arrays. An entry is found only through the one
before it, so one loop in Python steps from length to length; everything else is done for all entries at once. Entries
must be puts without versions, the only kind that Hudi's writers produce. Keys are sorted by their bytes, and may
repeat.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import take
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile.blocks import DATA_BLOCK, Block

Entry = tuple[bytes, bytes]
Places = npt.NDArray[np.int64]

KEY_END = b"\0" + struct.pack(">q", (1 << 63) - 1) + b"\4"  # no column family, the latest timestamp, a put
_LENGTHS = struct.Struct(">II")
_ROW_LENGTH = 2
_OVERHEAD = _LENGTHS.size + 1  # includes the MVCC number after the value, which is one byte
_FEWEST_KEY_BYTES = _ROW_LENGTH + len(KEY_END)
FEWEST_ENTRY_BYTES = _OVERHEAD + _FEWEST_KEY_BYTES


@dataclass(frozen=True, slots=True)
class DataBlock:
    """The entries of one data block, in key order.

    Attributes:
        payload: the plain bytes of the block.
        offset: place of the block in the file.
        starts: where each entry begins in the payload.
        keys, key_ends: where each key begins and ends.
        values, value_ends: where each value begins and ends.
    """

    payload: bytes
    offset: int
    starts: Places
    keys: Places
    key_ends: Places
    values: Places
    value_ends: Places

    def __len__(self) -> int:
        return len(self.starts)

    def get_key(self, index: int) -> bytes:
        """Return the key of an entry."""
        return self.payload[self.keys[index] : self.key_ends[index]]

    def get_value(self, index: int) -> bytes:
        """Return the value of an entry."""
        return self.payload[self.values[index] : self.value_ends[index]]

    def iterate_entries(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Yield keys and values of entries from ``start`` to ``stop``."""
        data, part = self.payload, slice(start, stop)
        places = (array[part].tolist() for array in (self.keys, self.key_ends, self.values, self.value_ends))
        for key, key_end, value, value_end in zip(*places, strict=True):
            yield data[key:key_end], data[value:value_end]

    def read_keys(self, start: int = 0, stop: int | None = None) -> pa.Array:
        """Return keys as an array of binary."""
        # Arrow does the copying: the payload is seen as one array in which every other item is a key.
        keys, ends = self.keys[start:stop], self.key_ends[start:stop]
        bounds = np.empty(2 * len(keys) + 1, np.int32)
        bounds[0:-1:2], bounds[1::2] = keys, ends
        bounds[-1] = len(self.payload)
        whole = pa.Array.from_buffers(
            pa.binary(), 2 * len(keys), [None, pa.py_buffer(bounds), pa.py_buffer(self.payload)]
        )
        return take(whole, pa.array(np.arange(0, 2 * len(keys), 2)))

    def take(self, found: Sequence[int]) -> DataBlock:
        """Return the entries with the given numbers, which must be ascending."""
        at = np.asarray(found, np.int64)
        places = (self.starts, self.keys, self.key_ends, self.values, self.value_ends)
        return DataBlock(self.payload, self.offset, *(each[at] for each in places))

    def find(self, key: bytes, start: int = 0) -> int:
        """Return the first entry, from ``start`` on, whose key is not less than ``key``; the length if none is."""
        low, high = start, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.get_key(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low


def split_data_block(block: Block) -> DataBlock:
    """Find the entries of a data block.

    Raises:
        CorruptFileError: the block is not a data block, its entries do not fill it, or its keys are not sorted.
        UnsupportedFeatureError: an entry is not a put, or has versions.
    """
    if block.magic != DATA_BLOCK:
        raise CorruptFileError(f"An HFile has a block {block.magic!r} where data should be.", block_offset=block.offset)
    payload = block.payload
    starts = _find_starts(payload, block.offset)
    view = _Numbers(payload)
    row_lengths = view.read(">u2", starts + _LENGTHS.size)
    key_lengths = view.read(">u4", starts)
    keys = starts + _LENGTHS.size + _ROW_LENGTH
    key_ends = keys + row_lengths
    values = starts + _LENGTHS.size + key_lengths
    value_ends = np.append(starts[1:], len(payload))[: len(starts)] - 1
    if (key_lengths < _FEWEST_KEY_BYTES + row_lengths).any():
        raise CorruptFileError("An HFile key does not fit into its entry.", block_offset=block.offset)
    if (view.read("u1", values - 1) != KEY_END[-1]).any():
        raise UnsupportedFeatureError("HFile entries other than puts are not supported.", block_offset=block.offset)
    if view.read("u1", value_ends).any():
        raise UnsupportedFeatureError("HFile entries with versions are not supported.", block_offset=block.offset)
    split = DataBlock(payload, block.offset, starts, keys, key_ends, values, value_ends)
    if not _is_sorted(split.read_keys()):
        raise CorruptFileError("The keys of an HFile block are not sorted.", block_offset=block.offset)
    return split


def _find_starts(payload: bytes, offset: int) -> Places:
    found: list[int] = []
    append, unpack, end = found.append, _LENGTHS.unpack_from, len(payload)
    at = 0
    try:
        while at < end:
            key_length, value_length = unpack(payload, at)
            append(at)
            at += _OVERHEAD + key_length + value_length
            if key_length < _FEWEST_KEY_BYTES:
                raise CorruptFileError("An HFile key does not fit into its entry.", block_offset=offset, offset=at)
    except struct.error:
        raise CorruptFileError("An HFile entry is cut short.", block_offset=offset, offset=at) from None
    if at != end:
        raise CorruptFileError("An HFile entry does not fit into its block.", block_offset=offset, offset=found[-1])
    return np.array(found, np.int64)


class _Numbers:
    """Reads numbers at many places in some bytes."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def read(self, dtype: str, places: Places) -> npt.NDArray[Any]:
        kind = np.dtype(dtype)
        if not len(places):
            return np.empty(0, np.int64)
        view = np.ndarray((len(self._payload) - kind.itemsize + 1,), kind, self._payload, strides=(1,))
        return view[places].astype(np.int64)


def _is_sorted(keys: pa.Array) -> bool:
    import pyarrow.compute as pc

    return len(keys) < 2 or bool(pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py())
