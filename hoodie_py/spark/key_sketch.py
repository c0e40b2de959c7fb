"""Which keys a write may have, in a megabyte: tasks that list a table's keys leave out the others."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.writer.bucket_index import compute_java_hashes

_BITS = 23  # of a hash: of a million keys that a write lacks, an eighth pass where it has a million
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, repr=False)
class KeySketch:
    """A bit for the hash of each key.

    Attributes:
        bits: packed, 2^23 of them.
    """

    bits: bytes

    @classmethod
    def from_keys(cls, keys: pa.StringArray) -> KeySketch:
        """Sketch some keys."""
        flags = np.zeros(1 << _BITS, np.bool_)
        flags[_find_bits(keys)] = True
        return cls(np.packbits(flags, bitorder="little").tobytes())

    @classmethod
    def unite(cls, sketches: Iterable[KeySketch]) -> KeySketch:
        """Return the sketch of all keys of some sketches."""
        bits = np.zeros((1 << _BITS) // 8, np.uint8)
        for sketch in sketches:
            bits |= np.frombuffer(sketch.bits, np.uint8)
        return cls(bits.tobytes())

    def pack(self) -> bytes:
        """Return the sketch as bytes to send: a few thousand where there are few keys."""
        return zlib.compress(self.bits, 1)

    @classmethod
    def unpack(cls, packed: bytes) -> KeySketch:
        """Return a sketch that was packed."""
        return cls(zlib.decompress(packed))

    def find(self, keys: pa.StringArray) -> npt.NDArray[np.int64]:
        """Return the numbers of those keys that may be among the sketched ones: all that are, and a few others."""
        places = _find_bits(keys)
        found = np.frombuffer(self.bits, np.uint8)[places >> 3] >> (places & 7).astype(np.uint8) & np.uint8(1)
        return np.flatnonzero(found)


def mix_hashes(hashes: np.ndarray, bits: int) -> npt.NDArray[np.uint64]:
    """Return numbers of so many bits, evenly spread, for hashes that may not be."""
    return hashes.astype(np.uint64) * _GOLDEN >> np.uint64(64 - bits)


def _find_bits(keys: pa.StringArray) -> npt.NDArray[np.int64]:
    """Return the bit of each key."""
    return mix_hashes(compute_java_hashes(keys), _BITS).astype(np.int64)
