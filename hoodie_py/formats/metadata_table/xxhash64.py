"""xxHash64 of many strings at once, with the seed of Hudi's hashed keys (Hudi ``HashID``).

It hashes a string's UTF-8 bytes. Stripes of 32 bytes go into four accumulators, which are merged. The remaining words
of 8 and 4 bytes and then the remaining bytes go into the result. Strings of equal length are hashed together, as rows
of a NumPy table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.hash_by_length import hash_by_length

Hashes = npt.NDArray[np.uint64]

SEED = 0xFFFFFFFF_DABADABA  # Java's int 0xdabadaba, whose sign is extended to 64 bits
_MASK = (1 << 64) - 1
_PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_P1, _P2, _P3, _P4, _P5 = map(np.uint64, _PRIMES)
_STRIPE = 32


def hash_xxhash64(texts: pa.Array) -> Hashes:
    """Return the hash of each string; a null counts as an empty string."""
    return hash_by_length(texts, np.uint64, _hash_one_length)


def _hash_one_length(octets: npt.NDArray[np.uint8], length: int) -> Hashes:
    """Hash strings of one length, one in each row of ``octets``."""
    striped = length - length % _STRIPE
    result = _hash_stripes(_to_words(octets[:, :striped], "<u8")) if striped else _start(len(octets), SEED + _PRIMES[4])
    result += np.uint64(length)
    at = striped
    for word in _to_words(octets[:, at : length & ~7], "<u8"):
        result = _rotate_left(result ^ _mix(word), 27) * _P1 + _P4
    at = length & ~7
    for word in _to_words(octets[:, at : length & ~3], "<u4"):
        result = _rotate_left(result ^ (word * _P1), 23) * _P2 + _P3
    for octet in octets[:, length & ~3 :].T:
        result = _rotate_left(result ^ (octet.astype(np.uint64) * _P5), 11) * _P1
    for shift, factor in ((33, _P2), (29, _P3)):
        result ^= result >> np.uint64(shift)
        result *= factor
    return result ^ (result >> np.uint64(32))


def _hash_stripes(words: Hashes) -> Hashes:
    starts = (SEED + _PRIMES[0] + _PRIMES[1], SEED + _PRIMES[1], SEED, SEED - _PRIMES[0])
    sums = np.stack([_start(words.shape[1], value) for value in starts])
    for at in range(0, len(words), 4):
        sums += words[at : at + 4] * _P2
        sums = _rotate_left(sums, 31) * _P1
    turns = ((0, 1), (1, 7), (2, 12), (3, 18))
    result = np.zeros(words.shape[1], np.uint64)
    for row, bits in turns:
        result += _rotate_left(sums[row], bits)
    for row in sums:
        result = (result ^ _mix(row)) * _P1 + _P4
    return result


def _to_words(octets: npt.NDArray[np.uint8], kind: str) -> Hashes:
    """Return the n-th little-endian words of all strings as row n."""
    return np.ascontiguousarray(octets).view(kind).astype(np.uint64).T


def _start(count: int, value: int) -> Hashes:
    return np.full(count, value & _MASK, np.uint64)


def _mix(values: Hashes) -> Hashes:
    return _rotate_left(values * _P2, 31) * _P1


def _rotate_left(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
