"""xxHash32 of many strings at once, with seed 0, for Hudi's consistent hashing (Hudi ``HashID.getXXHash32``).

It hashes a string's UTF-8 bytes. Stripes of 16 bytes go into four accumulators. The remaining words and then the
remaining bytes go into the sum of these. Strings of equal length are hashed together, as rows of a NumPy table.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.hash_by_length import hash_by_length

Hashes = npt.NDArray[np.uint32]

_P1, _P2, _P3, _P4, _P5 = map(np.uint32, (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))


def hash_xxhash32(texts: pa.Array) -> Hashes:
    """Return the hash of each string; a null counts as an empty string."""
    return hash_by_length(texts, np.uint32, _hash_one_length)


def _hash_one_length(octets: npt.NDArray[np.uint8], length: int) -> Hashes:
    """Hash strings of one length, one in each row of ``octets``."""
    # Transposed, so that the n-th words of all strings are one row.
    words = octets[:, : length & ~3].copy().view("<u4").astype(np.uint32, copy=False).T
    striped = length // 16 * 4  # words in whole stripes
    result = _hash_stripes(words[:striped]) if striped else np.full(len(octets), _P5)
    result += np.uint32(length)
    for word in words[striped:]:
        result += word * _P3
        result = _rotate_left(result, 17) * _P4
    for octet in octets[:, length & ~3 :].T:
        result += octet.astype(np.uint32) * _P5
        result = _rotate_left(result, 11) * _P1
    for shift, factor in ((15, _P2), (13, _P3)):
        result ^= result >> np.uint32(shift)
        result *= factor
    return result ^ (result >> np.uint32(16))


def _hash_stripes(words: Hashes) -> Hashes:
    # The start values for seed 0 are P1 + P2, P2, 0 and -P1, modulo 2**32: arrays wrap without a warning, scalars do
    # not.
    sums = np.zeros((4, words.shape[1]), np.uint32)
    sums[0] += _P1
    sums[0] += _P2
    sums[1] += _P2
    sums[3] -= _P1
    for at in range(0, len(words), 4):
        sums += words[at : at + 4] * _P2
        sums = _rotate_left(sums, 13) * _P1
    return _rotate_left(sums[0], 1) + _rotate_left(sums[1], 7) + _rotate_left(sums[2], 12) + _rotate_left(sums[3], 18)


def _rotate_left(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
