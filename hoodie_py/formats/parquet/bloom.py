"""Bloom filters over record keys, as they are stored in the footers of base files.

They must agree with Hudi's SimpleBloomFilter and HoodieDynamicBoundedBloomFilter. The text is Base64 of these bytes,
big-endian:

    simple      -1 int32, hashes int32, 1 (murmur) int8, bits int32, then ceil(bits / 8) bytes: a row
    dynamic     -1 int32, hashes int32, 1 int8, bits int32, keys per row int32, keys in the last row int32, rows int32,
                then the rows

Bit i of a row is bit ``i & 7`` of byte ``i >> 3``. The i-th bit of a key is ``abs(h mod bits)`` of the i-th hash of its
chain, with the remainder of a signed division.

A dynamic filter adds keys to its last row until that has the number of keys for which it was made, and then begins the
next row, until the rows hold the greatest number of keys. From then on it adds keys to the rows in turn: the first key
goes to the first row, the second to the first row again, the third to the second row, and so on. The count of the last
row includes these keys.

The hash is MurmurHash2 (Hudi MurmurHash, HashFunction). It has 32 bits and starts from ``seed ^ length``. The key's
bytes follow as little-endian words, then a tail of up to three bytes, the last one lowest. Each tail byte is *signed*
when it is shifted, as in Java. Then comes the usual finish. A filter needs a chain of hashes: each hash is the seed of
the next one.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.errors import CorruptFileError, InvalidQueryError, UnsupportedFeatureError

Hashes = npt.NDArray[np.uint32]

_M = np.uint32(0x5BD1E995)
_CHUNK_KEYS = 8192  # a chunk's arrays stay in the processor's cache
_CHUNK_BYTES = 1 << 20
_SPARE = 3


def hash_chains(keys: pa.Array, count: int) -> Iterator[tuple[npt.NDArray[np.intp], list[Hashes]]]:
    """Hash every key ``count`` times, the first time with seed 0.

    Yields chunks of the keys, in any order: their indices in ``keys``, and ``count`` arrays with one hash for each key.
    Raises CorruptFileError if a key is null.
    """
    if keys.null_count:
        raise CorruptFileError("A record key is null.")
    if not len(keys):
        return
    starts, lengths, data = _find_bytes(keys)
    words = lengths >> 2
    order = np.argsort(words, kind="stable") if words.min() != words.max() else np.arange(len(words))
    sizes, firsts = np.unique(words[order], return_index=True)
    for size, first, last in zip(sizes.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(order)], strict=True):
        step = max(1, min(_CHUNK_KEYS, _CHUNK_BYTES // (4 * size + 4)))
        for at in range(first, last, step):
            places = order[at : min(at + step, last)]
            yield places, _hash_chunk(starts[places], lengths[places], data, size, count)


def _find_bytes(keys: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offset of each key, its length, and the bytes of all keys.

    Three spare bytes come first: ``_mix_tails`` reads three bytes before the end of every key, however short it is.
    """
    keys = keys.cast(pa.large_string())
    _, offset_buffer, data_buffer = keys.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(keys) + 1, 8 * keys.offset)
    base = int(offsets[0])
    data = np.zeros(_SPARE + int(offsets[-1]) - base, np.uint8)
    if data_buffer is not None:
        data[_SPARE:] = np.frombuffer(data_buffer, np.uint8, len(data) - _SPARE, base)
    return offsets[:-1] - base + _SPARE, np.diff(offsets), data


def _hash_chunk(
    starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], words: int, count: int
) -> list[Hashes]:
    # The contribution of a word does not depend on the seed, so words are mixed once for the whole chain.
    mixed = _mix_words(starts, data, words)
    tail, factor = _mix_tails(starts + lengths, lengths & 3, data)
    size = lengths.astype(np.uint32)
    hashes: list[Hashes] = []
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
        hashes.append(h)
        seed = h
    return hashes


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


DYNAMIC = "DYNAMIC_V0"
SIMPLE = "SIMPLE"
MAX_BITS = 1 << 28
MAX_HASHES = 1000

_ROW_HEADER = struct.Struct(">iibi")
_DYNAMIC_HEADER = struct.Struct(">iii")
_VERSION = -1
_MURMUR = 1

Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """The size of a filter; the defaults are Hudi's.

    A *fitted* filter of fewer keys than ``entries`` is sized for its number of keys. Hudi's own filter has 430 KB: half
    of a small file, read by every reader of the footer.
    """

    entries: int = 60_000  # keys of a row
    fpp: float = 1e-9  # the share of wrong answers at that number of keys
    max_entries: int = 100_000  # keys of a dynamic filter, which limits its rows
    dynamic: bool = True  # whether the filter may have several rows
    fitted: bool = False

    def compute_shape(self) -> tuple[int, int]:
        """Return the bits of a row and the hashes of a key (Hudi BloomFilterUtils).

        Raises:
            InvalidQueryError: the settings do not describe a filter.
            UnsupportedFeatureError: the filter is too large for a footer.
        """
        if self.entries < 1 or self.max_entries < 1 or not 0 < self.fpp < 1:
            raise InvalidQueryError("A bloom filter needs a positive number of entries and an fpp between 0 and 1.")
        bits = math.ceil(self.entries * (-math.log(self.fpp) / (math.log(2) * math.log(2))))
        hashes = math.ceil(math.log(2) * bits / self.entries)
        if bits > MAX_BITS or hashes > MAX_HASHES:
            raise UnsupportedFeatureError(f"A bloom filter of {bits} bits is too large for the footer of a file.")
        return bits, hashes


class BloomFilter:
    """A complete filter: rows of bits, as packed bytes."""

    def __init__(self, bits: int, hashes: int, rows: list[Octets], *, per_row: int | None, in_last_row: int) -> None:
        self.bits = bits
        self.hashes = hashes
        self.rows = rows
        self._per_row = per_row  # None for a simple filter
        self._in_last_row = in_last_row

    @property
    def type_code(self) -> str:
        """The filter's type in Hudi (Hudi BloomFilterTypeCode)."""
        return SIMPLE if self._per_row is None else DYNAMIC

    def to_bytes(self) -> bytes:
        """Return the serialised filter, before Base64."""
        header = _ROW_HEADER.pack(_VERSION, self.hashes, _MURMUR, self.bits)
        rows = [header + row.tobytes() for row in self.rows]
        if self._per_row is None:
            return rows[0]
        return b"".join((header, _DYNAMIC_HEADER.pack(self._per_row, self._in_last_row, len(rows)), *rows))

    def to_text(self) -> str:
        """Return the filter as text for a footer."""
        return base64.b64encode(self.to_bytes()).decode("ascii")

    @classmethod
    def from_text(cls, text: str, type_code: str | None = None) -> BloomFilter:
        """Parse a filter in a footer; without a type code it is a simple one, as in Hudi.

        Raises:
            CorruptFileError: the text is not a bloom filter.
            UnsupportedFeatureError: the type of the filter or of its hash is unknown.
        """
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise CorruptFileError("A bloom filter is not Base64.") from None
        if type_code not in (None, SIMPLE, DYNAMIC):
            raise UnsupportedFeatureError(f"Bloom filters of type {type_code[:40]!r} are not known.")
        return _parse_filter(data, dynamic=type_code == DYNAMIC)

    def may_contain(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each key whether the file may contain it; False is certain."""
        found = np.zeros(len(keys), np.bool_)
        for places, hashes in hash_chains(keys, self.hashes):
            bits = np.stack([_compute_bit_numbers(h, self.bits) for h in hashes])
            # One row for each hash: a key may be there if all its bits are set in one row of the filter.
            octets, masks = bits >> 3, np.left_shift(np.uint8(1), (bits & 7).astype(np.uint8))
            for row in self.rows:
                found[places] |= ((row[octets] & masks) != 0).all(axis=0)
        return found


def _parse_filter(data: bytes, *, dynamic: bool) -> BloomFilter:
    at = _ROW_HEADER.size
    hashes, bits = _read_row_header(data, 0)
    per_row, in_last, count = None, 0, 1
    if dynamic:
        if len(data) < at + _DYNAMIC_HEADER.size:
            raise CorruptFileError("A bloom filter is cut short.")
        per_row, in_last, count = _DYNAMIC_HEADER.unpack_from(data, at)
        at += _DYNAMIC_HEADER.size
    size = (bits + 7) // 8
    step = size + (_ROW_HEADER.size if dynamic else 0)
    if count < 1 or len(data) - at != count * step:
        raise CorruptFileError(f"A bloom filter of {count} rows of {bits} bits cannot have {len(data)} bytes.")
    rows = []
    for end in range(at + step, len(data) + 1, step):
        if dynamic and _read_row_header(data, end - step) != (hashes, bits):
            raise CorruptFileError("The rows of a bloom filter differ.", offset=end - step)
        rows.append(np.frombuffer(data, np.uint8, size, end - size))
    return BloomFilter(bits, hashes, rows, per_row=per_row, in_last_row=in_last)


def _read_row_header(data: bytes, at: int) -> tuple[int, int]:
    if len(data) < at + _ROW_HEADER.size:
        raise CorruptFileError("A bloom filter is cut short.", offset=at)
    version, hashes, kind, bits = _ROW_HEADER.unpack_from(data, at)
    if version != _VERSION or kind != _MURMUR:
        raise UnsupportedFeatureError(f"Bloom filters of version {version} with hash {kind} are not known.")
    if not 0 < hashes <= MAX_HASHES or bits < 1:
        raise CorruptFileError(f"A bloom filter cannot have {hashes} hashes and {bits} bits.", offset=at)
    return hashes, bits


class BloomBuilder:
    """Builds a filter from keys in the order of their rows.

    Raises InvalidQueryError, UnsupportedFeatureError, as ``BloomSettings.compute_shape``.
    """

    def __init__(self, settings: BloomSettings | None = None) -> None:
        self._settings = settings or BloomSettings()
        self._bits, self._hashes = self._settings.compute_shape()
        self._rows: list[Octets] = []
        self._added = 0
        # Keys of the first row wait: only ``finish`` knows their number, and a fitted filter is sized by it.
        self._waiting: list[pa.Array] | None = [] if self._settings.fitted else None

    def _make_empty_row(self) -> Octets:
        return np.zeros((self._bits + 7) // 8, np.uint8)

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add the keys of the next rows. Raises CorruptFileError if a key is null."""
        for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else (keys,):
            if self._waiting is None:
                self._add_now(chunk)
                continue
            if chunk.null_count:
                raise CorruptFileError("A record key is null.")
            self._waiting.append(chunk)
            if sum(map(len, self._waiting)) > self._settings.entries:
                self._add_waiting(self._waiting)

    def _add_waiting(self, waiting: list[pa.Array]) -> None:
        self._waiting = None
        for chunk in waiting:
            self._add_now(chunk)

    def _add_now(self, keys: pa.Array) -> None:
        if not len(keys):
            return
        row_numbers = self._assign_rows(len(keys))
        for number in np.unique(row_numbers).tolist():
            while number >= len(self._rows):
                self._rows.append(self._make_empty_row())
            self._set_bits(self._rows[number], keys.take(from_numpy(np.flatnonzero(row_numbers == number))))
        self._added += len(keys)

    def _set_bits(self, row: Octets, keys: pa.Array) -> None:
        marks = np.zeros(self._bits, np.uint8)  # one byte for each bit: NumPy can set many bytes at once, but not bits
        for _, hashes in hash_chains(keys, self._hashes):
            for h in hashes:
                marks[_compute_bit_numbers(h, self._bits)] = 1
        row |= np.packbits(marks, bitorder="little")

    def _assign_rows(self, count: int) -> npt.NDArray[np.int64]:
        """Return the row of each of the next ``count`` keys."""
        places = np.arange(self._added, self._added + count)
        if not self._settings.dynamic:
            return np.zeros(count, np.int64)
        rows = self._max_rows
        beyond = places - rows * self._settings.entries
        return np.where(beyond < 0, places // self._settings.entries, np.maximum(beyond - 1, 0) % rows)

    @property
    def _max_rows(self) -> int:
        return -(-self._settings.max_entries // self._settings.entries)

    def finish(self) -> BloomFilter:
        """Return the filter of all added keys."""
        if self._waiting is not None:
            self._settings = replace(self._settings, entries=max(1, sum(map(len, self._waiting))))
            self._bits, self._hashes = self._settings.compute_shape()
            self._add_waiting(self._waiting)
        self._rows = self._rows or [self._make_empty_row()]
        if not self._settings.dynamic:
            return BloomFilter(self._bits, self._hashes, self._rows, per_row=None, in_last_row=0)
        full = (len(self._rows) - 1) * self._settings.entries
        return BloomFilter(
            self._bits, self._hashes, self._rows, per_row=self._settings.entries, in_last_row=self._added - full
        )


def _compute_bit_numbers(hashes: Hashes, bits: int) -> Hashes:
    """Return ``abs(hash mod bits)`` with the remainder of a signed division: the remainder of the absolute value."""
    size = np.abs(hashes.view(np.int32)).view(np.uint32)  # abs(-2**31) is -2**31 again, which is 2**31 unsigned: right
    # NumPy vectorises division by a constant, but not the remainder.
    quotient = size // np.uint32(bits)
    quotient *= np.uint32(bits)
    size -= quotient
    return size
