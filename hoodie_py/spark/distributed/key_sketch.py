"""A sketch of a write's keys, one megabyte large, by which tasks that list the table's keys drop most other keys.

It is a Bloom filter with one hash function. False positives only cost time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.hashes import compute_java_hashes

_BITS = 23  # of a hash: if a write has a million keys, an eighth of all other keys pass
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: Fibonacci hashing mixes the upper bits


@dataclass(frozen=True, slots=True, repr=False)
class KeySketch:
    """A bit for the hash of each key.

    ``bits`` has 2^23 bits, 8 in a byte.
    """

    bits: bytes

    @classmethod
    def from_keys(cls, keys: pa.StringArray) -> KeySketch:
        """Return the sketch of some keys."""
        flags = np.zeros(1 << _BITS, np.bool_)
        flags[_find_bits(keys)] = True
        return cls(np.packbits(flags, bitorder="little").tobytes())

    @classmethod
    def unite(cls, sketches: Iterable[KeySketch]) -> KeySketch:
        """Return the sketch of all keys of several sketches."""
        bits = np.zeros((1 << _BITS) // 8, np.uint8)
        for sketch in sketches:
            bits |= np.frombuffer(sketch.bits, np.uint8)
        return cls(bits.tobytes())

    def pack(self) -> bytes:
        """Return the sketch as compressed bytes: a few thousand for few keys."""
        return zlib.compress(self.bits, 1)

    @classmethod
    def unpack(cls, packed: bytes) -> KeySketch:
        """Return a sketch from its packed bytes."""
        return cls(zlib.decompress(packed))

    def find(self, keys: pa.StringArray) -> npt.NDArray[np.int64]:
        """Return the positions of the keys that may be in the sketch: all that are in it, and a few others."""
        places = _find_bits(keys)
        found = np.frombuffer(self.bits, np.uint8)[places >> 3] >> (places & 7).astype(np.uint8) & np.uint8(1)
        return np.flatnonzero(found)


def mix_hashes(hashes: np.ndarray, bits: int) -> npt.NDArray[np.uint64]:
    """Return evenly spread numbers of ``bits`` bits for hashes that may not be evenly spread."""
    return hashes.astype(np.uint64) * _GOLDEN >> np.uint64(64 - bits)


def _find_bits(keys: pa.StringArray) -> npt.NDArray[np.int64]:
    """Return the number of each key's bit."""
    return mix_hashes(compute_java_hashes(keys), _BITS).astype(np.int64)
