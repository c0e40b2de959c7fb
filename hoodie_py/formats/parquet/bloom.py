"""Bloom filters over record keys, as they are stored in the footers of base files.

They must agree with Hudi's SimpleBloomFilter and HoodieDynamicBoundedBloomFilter. The text is Base64 of these bytes,
big-endian:

    simple      -1 int32, hashes int32, 1 (murmur) int8, bits int32, then ceil(bits / 8) bytes: a row
    dynamic     -1 int32, hashes int32, 1 int8, bits int32, keys per row int32, keys in the last row int32, rows int32,
                then the rows

Bit i of a row is bit ``i & 7`` of byte ``i >> 3``. The i-th bit of a key is ``abs(h mod bits)`` of the i-th hash of its
chain, with the remainder of a signed division. A key is in a filter if all its bits are set in one row.

A reader takes bits, hashes and rows from the header, so a writer may choose them. Java's dynamic filter gets a second
row after 60,000 keys, and puts all keys beyond 120,000 into the same rows, thirty bits each: at 600,000 keys it lets
64 % of absent keys through, at two million all of them. A filter made here has one row, which grows up to about that
size. If there are more keys, each gets fewer hashes, as many as exclude most: five at 600,000 keys, where 3 % of absent
keys come through. Where a tenth would come through, the filter is one byte without a zero: Java's BLOOM index then
reads the file's keys, but fails on a file without a filter.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import CorruptFileError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.parquet.bloom_hashes import KeyBytes, compute_bit_numbers

DYNAMIC = "DYNAMIC_V0"
SIMPLE = "SIMPLE"
MAX_BITS = 1 << 28
MAX_HASHES = 1000

_ROW_HEADER = struct.Struct(">iibi")
_DYNAMIC_HEADER = struct.Struct(">iii")
_VERSION = -1
_MURMUR = 1
_MOST_COUNTED = (1 << 31) - 1
_MOST_FPP = 0.1  # a filter that lets more keys through is not worth its bytes
_WAITING_BYTES = 64 << 20

Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BloomShape:
    """The bits of a filter, the hashes of a key, and the share of absent keys that come through."""

    bits: int
    hashes: int
    fpp: float


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """The size of a filter; the defaults are Hudi's.

    A *fitted* filter of fewer keys than ``entries`` is sized for its number of keys. Hudi's own filter has 430 KB: half
    of a small file, read by every reader of the footer.
    """

    entries: int = 60_000  # keys that a filter is made for
    fpp: float = 1e-9  # the share of absent keys that come through
    max_entries: int = 100_000  # keys up to which a dynamic filter grows
    dynamic: bool = True
    fitted: bool = False

    def choose_shape(self, keys: int) -> BloomShape | None:
        """Return the shape of the filter of a file with this many keys (Hudi BloomFilterUtils).

        None: with so many keys a filter of the greatest size would exclude too few.

        Raises:
            InvalidQueryError: the settings do not describe a filter.
            UnsupportedFeatureError: the filter is too large for a footer.
        """
        if self.entries < 1 or self.max_entries < 1 or not 0 < self.fpp < 1:
            raise InvalidQueryError("A bloom filter needs a positive number of entries and an fpp between 0 and 1.")
        bits_a_key = -math.log(self.fpp) / (math.log(2) * math.log(2))
        most = max(self.entries, min(self.max_entries, int(MAX_BITS / bits_a_key))) if self.dynamic else self.entries
        made_for = min(max(keys, 1 if self.fitted else self.entries), most)
        bits = math.ceil(made_for * bits_a_key)
        hashes = math.ceil(math.log(2) * bits / made_for)
        if bits > MAX_BITS or hashes > MAX_HASHES:
            raise UnsupportedFeatureError(f"A bloom filter of {bits} bits is too large for the footer of a file.")
        if keys > made_for:
            hashes = max(1, round(math.log(2) * bits / keys))
        fpp = (1 - math.exp(-hashes * keys / bits)) ** hashes
        return BloomShape(bits, hashes, fpp) if keys <= made_for or fpp <= _MOST_FPP else None


@dataclass(frozen=True, slots=True, eq=False)
class BloomFilter:
    """A complete filter: rows of bits, as packed bytes."""

    bits: int
    hashes: int
    rows: tuple[Octets, ...]
    per_row: int | None = None  # None for a simple filter
    in_last_row: int = 0

    @classmethod
    def make_open(cls, *, dynamic: bool = False) -> BloomFilter:
        """Return the smallest filter that excludes no key."""
        return cls(8, 1, (np.full(1, 0xFF, np.uint8),), per_row=1 if dynamic else None, in_last_row=int(dynamic))

    @property
    def type_code(self) -> str:
        """The filter's type in Hudi (Hudi BloomFilterTypeCode)."""
        return SIMPLE if self.per_row is None else DYNAMIC

    def to_bytes(self) -> bytes:
        """Return the serialised filter, before Base64."""
        header = _ROW_HEADER.pack(_VERSION, self.hashes, _MURMUR, self.bits)
        rows = [header + row.tobytes() for row in self.rows]
        if self.per_row is None:
            return rows[0]
        return b"".join((header, _DYNAMIC_HEADER.pack(self.per_row, self.in_last_row, len(rows)), *rows))

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

    def count_set_bits(self) -> list[int]:
        """Count the bits of each row that are set."""
        return [int(np.count_nonzero(np.unpackbits(row))) for row in self.rows]

    def with_keys(self, keys: KeyBytes) -> BloomFilter:
        """Return a filter that has these keys, too, in its last row."""
        added = _BitRow(self.bits, self.hashes)
        added.add(keys)
        rows = *self.rows[:-1], self.rows[-1] | added.pack()
        return replace(self, rows=rows, in_last_row=min(self.in_last_row + len(keys), _MOST_COUNTED))

    def may_contain(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each key whether the file may contain it; False is certain. CorruptFileError: a key is null."""
        found = np.zeros(len(keys), np.bool_)
        for places, hashes in KeyBytes.of(keys).hash_chains(self.hashes):
            inside = np.ones((len(self.rows), len(places)), np.bool_)
            for each in hashes:
                bits = compute_bit_numbers(each, self.bits)
                octets, masks = bits >> 3, np.left_shift(np.uint8(1), (bits & 7).astype(np.uint8))
                for at, row in enumerate(self.rows):
                    inside[at] &= (row[octets] & masks) != 0
                if not inside.any():
                    break
            found[places] = inside.any(axis=0)
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
    return BloomFilter(bits, hashes, tuple(rows), per_row=per_row, in_last_row=in_last)


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
    """Builds the filter of a file's keys.

    Keys wait for the end, because only their number says how many hashes are best. They are hashed earlier if they take
    much memory, and not at all once they are too many for a filter.

    Raises InvalidQueryError, UnsupportedFeatureError, as ``BloomSettings.choose_shape``.
    """

    def __init__(self, settings: BloomSettings | None = None) -> None:
        self._settings = settings or BloomSettings()
        self._is_open = self._settings.choose_shape(1) is None
        self._count = self._waiting_bytes = 0
        self._waiting: list[KeyBytes] = []
        self._early: _BitRow | None = None

    def add(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Add keys. Raises CorruptFileError if a key is null."""
        for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else (keys,):
            if chunk.null_count:
                raise CorruptFileError("A record key is null.")
            self._count += len(chunk)
            if self._is_open or self._settings.choose_shape(self._count) is None:
                self._is_open, self._early, self._waiting = True, None, []
            elif self._early is not None:
                self._early.add(KeyBytes.of(chunk))
            else:
                self._waiting.append(KeyBytes.of(chunk))
                self._waiting_bytes += self._waiting[-1].nbytes
                if self._waiting_bytes > _WAITING_BYTES:
                    self._early = self._hash_waiting(self._guess_shape())

    def _guess_shape(self) -> BloomShape | None:
        """Return a shape for more keys than there are yet, where so many have one."""
        shapes = (self._settings.choose_shape(times * self._count) for times in (4, 2, 1))
        return next(filter(None, shapes), None)

    def _hash_waiting(self, shape: BloomShape | None) -> _BitRow | None:
        waiting, self._waiting = self._waiting, []
        if shape is None:
            return None
        row = _BitRow(shape.bits, shape.hashes)
        for keys in waiting:
            row.add(keys)
        return row

    def finish(self) -> BloomFilter:
        """Return the filter of all added keys."""
        dynamic = self._settings.dynamic
        row = None if self._is_open else self._early or self._hash_waiting(self._settings.choose_shape(self._count))
        if row is None or (self._early is not None and row.compute_fpp() > _MOST_FPP):
            return BloomFilter.make_open(dynamic=dynamic)
        per_row = max(self._count, 1 if self._settings.fitted else self._settings.entries) if dynamic else None
        in_row = self._count if dynamic else 0
        return BloomFilter(row.bits, row.hashes, (row.pack(),), per_row=per_row, in_last_row=in_row)


class _BitRow:
    """A row to which keys are added. It has one byte for each bit: NumPy can set many bytes at once, but not bits."""

    def __init__(self, bits: int, hashes: int) -> None:
        self.bits = bits
        self.hashes = hashes
        self._marks = np.zeros(bits, np.uint8)

    def add(self, keys: KeyBytes) -> None:
        for _, hashes in keys.hash_chains(self.hashes):
            for each in hashes:
                self._marks[compute_bit_numbers(each, self.bits)] = 1

    def compute_fpp(self) -> float:
        """Return the share of absent keys that come through."""
        return float((np.count_nonzero(self._marks) / self.bits) ** self.hashes)

    def pack(self) -> Octets:
        return np.packbits(self._marks, bitorder="little")
