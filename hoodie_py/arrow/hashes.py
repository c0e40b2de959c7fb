"""Hash many strings at once as Java Hudi does: xxHash (``HashID``), and Java's ``String.hashCode``.

``hash_xxhash64`` has the seed of Hudi's hashed keys. ``hash_xxhash32`` has seed 0, for consistent hashing
(``HashID.getXXHash32``).

Both hash a string's UTF-8 bytes: whole stripes (32 bytes, or 16) go into four accumulators, which are merged; the
remaining words and then the remaining bytes are added to the result. Strings of equal length are hashed together, as
the rows of a NumPy table.

``String.hashCode`` is s[0] * 31^(n - 1) + ... + s[n - 1] over UTF-16 units, in 32 bits.
"""

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


FACTOR = np.uint32(31)
"""Factor of Java's hash codes; uint32 wraps around as Java's int does."""


def compute_java_hashes(texts: pa.Array) -> np.ndarray:
    """Compute Java's hash code of each string as uint32; 0 for null, as in Java's list of strings."""
    lengths, starts, units = _split_utf16(texts)
    order = np.argsort(-lengths, kind="stable")
    falling, first = lengths[order], starts[order]
    hashes = np.zeros(len(lengths), np.uint32)
    longest = int(falling[0]) if len(falling) else 0
    # Sorted by falling length, the strings with an i-th unit come first, so each step works on a shorter prefix.
    counts = np.searchsorted(-falling, -np.arange(longest), side="left")
    for i, count in enumerate(counts.tolist()):
        active = hashes[:count]
        active *= FACTOR
        active += units[first[:count] + i]
    result = np.empty_like(hashes)
    result[order] = hashes
    return result


def _split_utf16(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each string's length and start in UTF-16 units, and all units; a null is an empty string.

    Java hashes UTF-16 units, Arrow stores UTF-8.
    """
    large = texts.cast(pa.large_string()).fill_null("")
    _, offset_buffer, data_buffer = large.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(large) + 1, 8 * large.offset)
    base, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    offsets = offsets - base
    octets = np.frombuffer(data_buffer, np.uint8, size, base) if size else np.empty(0, np.uint8)
    if not size or int(octets.max()) < 0x80:  # ASCII, where bytes are units
        return np.diff(offsets), offsets[:-1], octets
    lead = (octets & 0xC0) != 0x80  # true for the first byte of a character
    widths = lead.astype(np.int64) + (octets >= 0xF0)  # characters of four bytes take two units
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])[offsets]
    units = np.frombuffer(octets.tobytes().decode().encode("utf-16-le"), "<u2")
    return np.diff(places), places[:-1], units
