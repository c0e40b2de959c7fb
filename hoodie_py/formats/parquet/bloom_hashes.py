"""The hashes of record keys that bloom filters use (Hudi MurmurHash, HashFunction).

MurmurHash2 has 32 bits and starts from ``seed ^ length``. The key's bytes follow as little-endian words, then a tail of
up to three bytes, the last one lowest. Each tail byte is *signed* when it is shifted, as in Java. Then comes the usual
finish. A filter needs a chain of hashes: each hash is the seed of the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import CorruptFileError

Hashes = npt.NDArray[np.uint32]

_M = np.uint32(0x5BD1E995)
_CHUNK_KEYS = 16384  # a chunk's arrays stay in the processor's cache
_CHUNK_BYTES = 1 << 20
_SPARE = 3


@dataclass(frozen=True, slots=True)
class KeyBytes:
    """The bytes of some keys, copied: the memory that the keys came in may be freed."""

    lengths: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]  # with three spare bytes first, as ``_mix_tails`` reads three bytes before a key's end

    @classmethod
    def of(cls, keys: pa.Array) -> Self:
        """Copy the bytes of an array of strings. Raises CorruptFileError if a key is null."""
        if keys.null_count:
            raise CorruptFileError("A record key is null.")
        if not len(keys):
            return cls(np.zeros(0, np.int64), np.zeros(_SPARE, np.uint8))
        keys = keys.cast(pa.large_string())
        _, offset_buffer, data_buffer = keys.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64, len(keys) + 1, 8 * keys.offset)
        base = int(offsets[0])
        data = np.zeros(_SPARE + int(offsets[-1]) - base, np.uint8)
        if data_buffer is not None:
            data[_SPARE:] = np.frombuffer(data_buffer, np.uint8, len(data) - _SPARE, base)
        return cls(np.diff(offsets), data)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        """The bytes of memory that are held."""
        return self.lengths.nbytes + self.data.nbytes

    def hash_chains(self, count: int) -> Iterator[tuple[npt.NDArray[np.intp], Iterator[Hashes]]]:
        """Hash every key ``count`` times, the first time with seed 0.

        Yields chunks of the keys, in any order: their indices, and an iterator of ``count`` arrays with one hash for
        each key. An array must not be changed.
        """
        if not len(self):
            return
        starts = np.cumsum(self.lengths) - self.lengths + _SPARE
        words = self.lengths >> 2
        order = np.argsort(words, kind="stable") if words.min() != words.max() else np.arange(len(words))
        sizes, firsts = np.unique(words[order], return_index=True)
        for size, first, last in zip(sizes.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(order)], strict=True):
            step = max(1, min(_CHUNK_KEYS, _CHUNK_BYTES // (4 * size + 4)))
            for at in range(first, last, step):
                places = order[at : min(at + step, last)]
                yield places, _hash_chunk(starts[places], self.lengths[places], self.data, size, count)


def _hash_chunk(
    starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], words: int, count: int
) -> Iterator[Hashes]:
    # The contribution of a word does not depend on the seed, so words are mixed once for the whole chain.
    mixed = _mix_words(starts, data, words)
    tail, factor = _mix_tails(starts + lengths, lengths & 3, data)
    size = lengths.astype(np.uint32)
    seed = np.zeros(len(starts), np.uint32)
    spare = np.empty_like(seed)
    for _ in range(count):
        h = seed ^ size
        for word in mixed:
            h *= _M
            h ^= word
        if factor is not None:
            h ^= tail
            h *= factor
        np.right_shift(h, 13, out=spare)
        h ^= spare
        h *= _M
        np.right_shift(h, 15, out=spare)
        h ^= spare
        yield h
        seed = h


def _mix_words(starts: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], words: int) -> list[Hashes]:
    # A table of bytes, one row for each key; transposed and copied, each word of all keys is one contiguous array.
    octets = data[starts[:, None] + np.arange(4 * words)]
    values = octets.view("<u4").astype(np.uint32, copy=False).T.copy()
    values *= _M
    values ^= values >> 24
    values *= _M
    return list(values)


def _mix_tails(
    ends: npt.NDArray[np.int64], left: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]
) -> tuple[Hashes, Hashes | None]:
    """Return the tails of the keys, and their factors: 1 for a key without tail; None if no key has one."""
    tail = np.zeros(len(ends), np.uint32)
    if not left.any():
        return tail, None
    for i in range(3):  # the bytes after the words, from the last one backwards; np.where drops bytes of words
        signed = data[ends - 1 - i].view(np.int8).astype(np.int32) << (8 * i)
        tail ^= np.where(left > i, signed, 0).astype(np.int32).view(np.uint32)
    return tail, np.where(left > 0, _M, np.uint32(1)).astype(np.uint32)


def compute_bit_numbers(hashes: Hashes, bits: int) -> npt.NDArray[np.intp]:
    """Return ``abs(hash mod bits)`` with the remainder of a signed division: the remainder of the absolute value."""
    size = np.abs(hashes.view(np.int32)).view(np.uint32)  # abs(-2**31) is -2**31 again, which is 2**31 unsigned: right
    # NumPy vectorises division by a constant, but not the remainder.
    quotient = size // np.uint32(bits)
    quotient *= np.uint32(bits)
    size -= quotient
    return size.astype(np.intp)  # the type of indices: NumPy takes twice as long to index by another one
