"""xxHash of many strings at once, as Hudi computes it (``HashID``).

``hash_xxhash64`` has the seed of Hudi's hashed keys. ``hash_xxhash32`` has seed 0, for consistent hashing
(``HashID.getXXHash32``).

Both hash a string's UTF-8 bytes: whole stripes (32 bytes, or 16) go into four accumulators, which are merged; the
remaining words and then the remaining bytes are added to the result. Strings of equal length are hashed together, as
the rows of a NumPy table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.hash_by_length import hash_by_length

Hashes64 = npt.NDArray[np.uint64]

SEED = 0xFFFFFFFF_DABADABA  # Java's int 0xdabadaba, sign-extended to 64 bits
_MASK = (1 << 64) - 1
_PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME64_5 = map(np.uint64, _PRIMES)
_STRIPE = 32


def hash_xxhash64(texts: pa.Array) -> Hashes64:
    """Return the hash of each string; a null counts as an empty string."""
    return hash_by_length(texts, np.uint64, _hash64)


def _hash64(octets: npt.NDArray[np.uint8], length: int) -> Hashes64:
    """Hash strings of one length, one in each row of ``octets``."""
    striped = length - length % _STRIPE
    result = (
        _hash_stripes64(_to_words(octets[:, :striped], "<u8")) if striped else _start(len(octets), SEED + _PRIMES[4])
    )
    result += np.uint64(length)
    at = striped
    for word in _to_words(octets[:, at : length & ~7], "<u8"):
        result = _rotate_left64(result ^ _mix(word), 27) * _PRIME64_1 + _PRIME64_4
    at = length & ~7
    for word in _to_words(octets[:, at : length & ~3], "<u4"):
        result = _rotate_left64(result ^ (word * _PRIME64_1), 23) * _PRIME64_2 + _PRIME64_3
    for octet in octets[:, length & ~3 :].T:
        result = _rotate_left64(result ^ (octet.astype(np.uint64) * _PRIME64_5), 11) * _PRIME64_1
    for shift, factor in ((33, _PRIME64_2), (29, _PRIME64_3)):
        result ^= result >> np.uint64(shift)
        result *= factor
    return result ^ (result >> np.uint64(32))


def _hash_stripes64(words: Hashes64) -> Hashes64:
    starts = (SEED + _PRIMES[0] + _PRIMES[1], SEED + _PRIMES[1], SEED, SEED - _PRIMES[0])
    sums = np.stack([_start(words.shape[1], value) for value in starts])
    for at in range(0, len(words), 4):
        sums += words[at : at + 4] * _PRIME64_2
        sums = _rotate_left64(sums, 31) * _PRIME64_1
    turns = ((0, 1), (1, 7), (2, 12), (3, 18))
    result = np.zeros(words.shape[1], np.uint64)
    for row, bits in turns:
        result += _rotate_left64(sums[row], bits)
    for row in sums:
        result = (result ^ _mix(row)) * _PRIME64_1 + _PRIME64_4
    return result


def _to_words(octets: npt.NDArray[np.uint8], kind: str) -> Hashes64:
    """Return the little-endian words of all strings: row n holds every string's n-th word."""
    return np.ascontiguousarray(octets).view(kind).astype(np.uint64).T


def _start(count: int, value: int) -> Hashes64:
    return np.full(count, value & _MASK, np.uint64)


def _mix(values: Hashes64) -> Hashes64:
    return _rotate_left64(values * _PRIME64_2, 31) * _PRIME64_1


def _rotate_left64(values: Hashes64, bits: int) -> Hashes64:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


Hashes32 = npt.NDArray[np.uint32]

_PRIME32_1, _PRIME32_2, _PRIME32_3, _PRIME32_4, _PRIME32_5 = map(
    np.uint32, (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
)


def hash_xxhash32(texts: pa.Array) -> Hashes32:
    """Return the hash of each string; a null counts as an empty string."""
    return hash_by_length(texts, np.uint32, _hash32)


def _hash32(octets: npt.NDArray[np.uint8], length: int) -> Hashes32:
    """Hash strings of one length, one in each row of ``octets``."""
    # Transposed: row n holds the n-th word of every string.
    words = octets[:, : length & ~3].copy().view("<u4").astype(np.uint32, copy=False).T
    striped = length // 16 * 4  # words in whole stripes
    result = _hash_stripes32(words[:striped]) if striped else np.full(len(octets), _PRIME32_5)
    result += np.uint32(length)
    for word in words[striped:]:
        result += word * _PRIME32_3
        result = _rotate_left32(result, 17) * _PRIME32_4
    for octet in octets[:, length & ~3 :].T:
        result += octet.astype(np.uint32) * _PRIME32_5
        result = _rotate_left32(result, 11) * _PRIME32_1
    for shift, factor in ((15, _PRIME32_2), (13, _PRIME32_3)):
        result ^= result >> np.uint32(shift)
        result *= factor
    return result ^ (result >> np.uint32(16))


def _hash_stripes32(words: Hashes32) -> Hashes32:
    # The start values for seed 0 are P1 + P2, P2, 0 and -P1, modulo 2**32. They are added to arrays, which wrap without
    # a warning; NumPy's scalars warn.
    sums = np.zeros((4, words.shape[1]), np.uint32)
    sums[0] += _PRIME32_1
    sums[0] += _PRIME32_2
    sums[1] += _PRIME32_2
    sums[3] -= _PRIME32_1
    for at in range(0, len(words), 4):
        sums += words[at : at + 4] * _PRIME32_2
        sums = _rotate_left32(sums, 13) * _PRIME32_1
    return (
        _rotate_left32(sums[0], 1)
        + _rotate_left32(sums[1], 7)
        + _rotate_left32(sums[2], 12)
        + _rotate_left32(sums[3], 18)
    )


def _rotate_left32(values: Hashes32, bits: int) -> Hashes32:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
