"""HFile: one open HFile, read block by block (Hudi ``HFileReaderImpl``, ``HoodieNativeAvroHFileReader``).

Opening reads the end of the file: trailer, root index, names of meta blocks, file info. A look-up of keys then reads
the index blocks and data blocks that may contain them, each once, and keeps none of them.

Four rules keep this safe with hostile files:

* the index is followed for exactly as many levels as the trailer says, and every place is before the root index;
* the offsets of blocks ascend at each level, so that no block is read twice;
* the plain bytes of all blocks together are limited by their bytes in the file;
* a file with another number of entries than the trailer says, with keys out of order, or with keys that contradict the
  index is an error. So if a scan succeeds, look-ups find all that it finds.

The index says which block contains which keys (Hudi ``HFileRootIndexBlock``, ``HFileLeafIndexBlock``):

    root         for each block: offset int64, size int32, Hadoop varint length, key
    below        count int32, count + 1 offsets int32 from the end of this list, then offset int64, size int32, key
    key          length int16, bytes; HBase adds 10 bytes, Hudi's own writer does not
    meta index   as the root, but its keys are names without a length

With one level the root points to data blocks. With more it points to the blocks of the next level, and only the last
level, the leaves, points to data. An index key is not greater than the first key of its block, and not less than the
last key of the previous block: HBase shortens keys. So index keys are used only for order.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile import blocks
from hoodie_py.formats.hfile.blocks import Block, MemorySource, Source
from hoodie_py.formats.hfile.data_block import FEWEST_ENTRY_BYTES, DataBlock, Entry, split_data_block
from hoodie_py.formats.limits import get_limits, raise_limit_error

_PLACE = struct.Struct(">qi")
_COUNT = struct.Struct(">i")
_KEY_LENGTH = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The place of a block, and a key that is not greater than its first one."""

    offset: int
    size: int
    key: bytes

    @property
    def end(self) -> int:
        """The offset of the block's end."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Index:
    """The entries of one index block, in key order."""

    entries: Sequence[IndexEntry]
    keys: Sequence[bytes]

    def find_span(self, first: bytes | None, last: bytes | None) -> range:
        """Return the numbers of blocks that may contain keys from ``first`` to ``last``, inclusive; None is no bound.

        The block before one whose index key equals ``first`` is included: it may end with this key.
        """
        start = 0 if first is None else max(bisect_left(self.keys, first) - 1, 0)
        return range(start, len(self.keys) if last is None else bisect_right(self.keys, last))


def parse_root_index(block: Block, count: int, most: int) -> Index:
    """Decode the root index.

    The blocks that the index points to must end at or before ``most``.

    Raises CorruptFileError if the index is damaged, points elsewhere or is not sorted.
    """
    entries = _parse_root(block, count, most, "root index")
    return _make_index([IndexEntry(e.offset, e.size, _cut_key(e.key, block.offset)) for e in entries], block.offset)


def parse_meta_index(block: Block, count: int, most: int) -> dict[str, IndexEntry]:
    """Decode the index of meta blocks, by name. Arguments and errors as for ``parse_root_index``."""
    entries = _parse_root(block, count, most, "meta index")
    return {entry.key.decode("utf-8", errors="replace"): entry for entry in entries}


def _parse_root(block: Block, count: int, most: int, what: str) -> list[IndexEntry]:
    payload, at = block.payload, 0
    if block.magic != blocks.ROOT_INDEX:
        raise CorruptFileError(f"An HFile has no {what} where its trailer says.", offset=block.offset)
    if count > len(payload) // (_PLACE.size + 1):
        raise CorruptFileError(f"An HFile's {what} cannot have {count} entries.", offset=block.offset)
    entries: list[IndexEntry] = []
    for _ in range(count):
        if at + _PLACE.size >= len(payload):
            raise CorruptFileError(f"An HFile's {what} is cut short.", offset=block.offset)
        offset, size = _PLACE.unpack_from(payload, at)
        length, start = _read_hadoop_varint(payload, at + _PLACE.size, block.offset)
        at = start + length
        if at > len(payload):
            raise CorruptFileError(f"An HFile's {what} is cut short.", offset=block.offset)
        entries.append(_check_place(IndexEntry(offset, size, payload[start:at]), most, block.offset))
    return entries


def parse_inner_index(block: Block, most: int, *, leaf: bool) -> Index:
    """Decode an index block below the root: a leaf, whose entries are data blocks, or an intermediate one.

    Arguments and errors as for ``parse_root_index``.
    """
    payload = block.payload
    if block.magic != (blocks.LEAF_INDEX if leaf else blocks.INNER_INDEX):
        raise CorruptFileError(f"An HFile has a block {block.magic!r} where its index should be.", offset=block.offset)
    (count,) = _COUNT.unpack_from(payload) if len(payload) >= _COUNT.size else (-1,)
    start = _COUNT.size * (count + 2)
    if not 0 <= count <= len(payload) // (_COUNT.size + _PLACE.size) or start > len(payload):
        raise CorruptFileError(f"An HFile's index block cannot have {count} entries.", offset=block.offset)
    bounds = [start + each for each in struct.unpack_from(f">{count + 1}i", payload, _COUNT.size)]
    entries: list[IndexEntry] = []
    at = start
    for first, last in pairwise(bounds):
        if first != at or not first + _PLACE.size <= last <= len(payload):
            raise CorruptFileError("An HFile's index block is malformed.", offset=block.offset)
        offset, size = _PLACE.unpack_from(payload, first)
        key = _cut_key(payload[first + _PLACE.size : last], block.offset)
        entries.append(_check_place(IndexEntry(offset, size, key), most, block.offset))
        at = last
    return _make_index(entries, block.offset)


def _make_index(entries: Sequence[IndexEntry], offset: int) -> Index:
    keys = [entry.key for entry in entries]
    if any(later < earlier for earlier, later in pairwise(keys)):
        raise CorruptFileError("The keys of an HFile's index are not sorted.", offset=offset)
    return Index(entries, keys)


def _check_place(entry: IndexEntry, most: int, offset: int) -> IndexEntry:
    if entry.offset < 0 or entry.size <= 0 or entry.offset + entry.size > most:
        raise CorruptFileError("An HFile's index points out of the file.", offset=offset)
    return entry


def _cut_key(stored: bytes, offset: int) -> bytes:
    """Return a key without its length and HBase's additions."""
    (length,) = _KEY_LENGTH.unpack_from(stored) if len(stored) >= _KEY_LENGTH.size else (-1,)
    if not 0 <= length <= len(stored) - _KEY_LENGTH.size:
        raise CorruptFileError("A key of an HFile's index is cut short.", offset=offset)
    return stored[_KEY_LENGTH.size : _KEY_LENGTH.size + length]


def _read_hadoop_varint(payload: bytes, at: int, offset: int) -> tuple[int, int]:
    """Return the number at ``at`` and its end (Hadoop ``WritableUtils.readVInt``); it must not be negative."""
    first = payload[at]
    if first < 0x80:
        return first, at + 1
    size = 0x90 - first  # bytes after the first one, if the number is positive
    if not 1 <= size <= 4 or at + 1 + size > len(payload):
        raise CorruptFileError("A length in an HFile's index is malformed.", offset=offset)
    return int.from_bytes(payload[at + 1 : at + 1 + size], "big"), at + 1 + size


_FREE_BYTES = 64 << 20  # plain bytes of all blocks that are always allowed
_READ_AT_ONCE = 4 << 20  # bytes of adjacent data blocks that one request reads, unless a single block is larger
_LEAF_LEVEL = 2  # the level above data blocks, which are level 1
SCHEMA = "schema"
KeyRange = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class _Place:
    """A data block in the index; ``beyond`` is a key that is not less than its last one, None if unknown."""

    entry: IndexEntry
    beyond: bytes | None


class HFile:
    """One open HFile.

    Raises:
        CorruptFileError: the bytes are not an HFile, or a damaged one.
        UnsupportedFeatureError: the version is unknown, or the codec cannot be decompressed.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.trailer = blocks.read_trailer(source)
        self._plain = self._packed = 0
        self._opened = source.read(self.trailer.root, self.trailer.start)
        root = self._read_loaded(self.trailer.root)
        self._root = parse_root_index(root, self.trailer.data_count, self.trailer.root)
        self._after_root = root.end
        self.info = blocks.parse_file_info(self._read_loaded(self.trailer.info))
        self._check_count()

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> HFile:
        """Open an HFile in memory. Raises as the class."""
        return cls(MemorySource(memoryview(data)))

    @property
    def entries(self) -> int:
        """The number of entries according to the trailer; ``iterate_blocks`` checks it."""
        return self.trailer.entries

    @property
    def schema_text(self) -> str | None:
        """The Avro schema (JSON) of the values; None if the file contains none.

        Raises CorruptFileError if it is not UTF-8.
        """
        text = self.info.get(SCHEMA)
        try:
            return None if text is None else text.decode()
        except UnicodeDecodeError:
            raise CorruptFileError("The schema of an HFile is not UTF-8.", offset=self.trailer.info) from None

    def read_meta(self, name: str) -> bytes | None:
        """Return the content of a meta block, None if there is none.

        Raises CorruptFileError if the block is damaged.
        """
        entry = self._meta_index.get(name)
        if entry is None:
            return None
        block = self._read_at(entry)
        if block.magic != blocks.META_BLOCK:
            raise CorruptFileError(
                f"An HFile has a block {block.magic!r} where {name!r} should be.", offset=entry.offset
            )
        return block.payload

    def _check_count(self) -> None:
        """Refuse a number of entries that the file cannot contain: callers reserve memory for it."""
        limits, count = get_limits(), self.entries
        if count * FEWEST_ENTRY_BYTES > _FREE_BYTES + limits.metadata_ratio * self._source.size:
            raise CorruptFileError(f"An HFile of {self._source.size} bytes cannot have {count} entries.")
        if count > limits.file_rows:
            raise_limit_error(UnsupportedFeatureError, f"An HFile has {count} entries", "file_rows")

    @cached_property
    def _meta_index(self) -> dict[str, IndexEntry]:
        if not self.trailer.meta_count:
            return {}
        return parse_meta_index(self._read_loaded(self._after_root), self.trailer.meta_count, self.trailer.root)

    def iterate_entries(self, start: bytes | None = None) -> Iterator[Entry]:
        """Yield keys and values in key order, starting at the first key that is not less than ``start``.

        Raises:
            CorruptFileError: the file is damaged.
            UnsupportedFeatureError: an entry is not a put without versions, or a block is larger than a limit.
        """
        for block in self.iterate_blocks(start):
            yield from block.iterate_entries(0 if start is None else block.find(start))

    def select_keys(self, keys: Sequence[bytes]) -> Iterator[DataBlock]:
        """Yield the entries of some sorted keys, block by block; several entries if a key repeats in the file.

        Raises as ``iterate_entries``.
        """
        wanted = list(dict.fromkeys(keys))
        for block in self.find_blocks([(key, key) for key in wanted]):
            first, last = block.get_key(0), block.get_key(len(block) - 1)
            found: list[int] = []
            at = 0
            for key in wanted[bisect_left(wanted, first) : bisect_right(wanted, last)]:
                at = block.find(key, at)
                while at < len(block) and block.get_key(at) == key:
                    found.append(at)
                    at += 1
            if found:
                yield block.take(found)

    def select_prefixes(self, prefixes: Sequence[bytes]) -> Iterator[DataBlock]:
        """Yield the entries whose keys begin with one of some sorted prefixes, block by block, each entry once.

        Raises as ``iterate_entries``.
        """
        wanted = _drop_covered(prefixes)
        for block in self.find_blocks([(prefix, _find_last(prefix)) for prefix in wanted]):
            first, last = block.get_key(0), block.get_key(len(block) - 1)
            found: list[int] = []
            for prefix in wanted[max(bisect_right(wanted, first) - 1, 0) : bisect_right(wanted, last)]:
                start, beyond = block.find(prefix), _find_last(prefix)
                found += range(start, len(block) if beyond is None else block.find(beyond, start))
            if found:
                yield block.take(found)

    def iterate_blocks(self, start: bytes | None = None) -> Iterator[DataBlock]:
        """Yield data blocks in key order, starting at the one that may contain ``start``. Raises as
        ``iterate_entries``.
        """
        found = 0
        for block in self.find_blocks([(start, None)]):
            found += len(block)
            yield block
        if start is None and found != self.entries:
            raise CorruptFileError(f"An HFile of {self.entries} entries has {found}.")

    def find_blocks(self, ranges: Sequence[KeyRange]) -> Iterator[DataBlock]:
        """Yield the data blocks that may contain keys of some ranges, each once, in key order.

        Ranges are sorted and include both ends; None is no bound. Raises as ``iterate_entries``.
        """
        before: bytes | None = None
        for place, block in self._fetch(self._find_places(ranges)):
            split = split_data_block(block)
            if not len(split):
                continue
            first, last = split.get_key(0), split.get_key(len(split) - 1)
            if before is not None and first < before:
                raise CorruptFileError("The keys of an HFile are not sorted.", block_offset=block.offset)
            if first < place.entry.key or (place.beyond is not None and last > place.beyond):
                raise CorruptFileError("An HFile block has keys that its index denies.", block_offset=block.offset)
            before = last
            yield split

    def _find_places(self, ranges: Sequence[KeyRange]) -> Iterator[_Place]:
        """Yield the places of the data blocks that may contain keys of some ranges."""
        levels = max(self.trailer.levels, 1)
        return self._descend(self._root, ranges, levels, [-1] * (levels + 1), None)

    def _descend(
        self, index: Index, ranges: Sequence[KeyRange], level: int, passed: list[int], beyond: bytes | None
    ) -> Iterator[_Place]:
        """Yield the places of data blocks below an index block.

        ``passed`` holds the last offset at each level; no key below is greater than ``beyond``.
        """
        chosen: dict[int, list[KeyRange]] = {}
        for each in ranges:
            for number in index.find_span(*each):
                chosen.setdefault(number, []).append(each)
        for number, inside in chosen.items():
            entry = index.entries[number]
            last = index.keys[number + 1] if number + 1 < len(index.keys) else beyond
            if entry.offset <= passed[level]:
                raise CorruptFileError("An HFile's index does not go forward.", offset=entry.offset)
            passed[level] = entry.offset
            if level == 1:
                yield _Place(entry, last)
                continue
            inner = parse_inner_index(self._read_at(entry), self.trailer.root, leaf=level == _LEAF_LEVEL)
            if inner.keys and (inner.keys[0] < entry.key or (last is not None and inner.keys[-1] > last)):
                raise CorruptFileError("The levels of an HFile's index contradict each other.", offset=entry.offset)
            yield from self._descend(inner, inside, level - 1, passed, last)

    def _fetch(self, places: Iterator[_Place]) -> Iterator[tuple[_Place, Block]]:
        """Read data blocks, adjacent ones with one request."""
        group: list[_Place] = []
        for place in places:
            if group and (
                place.entry.offset != group[-1].entry.end or place.entry.end - group[0].entry.offset > _READ_AT_ONCE
            ):
                yield from self._read_group(group)
                group = []
            group.append(place)
        if group:
            yield from self._read_group(group)

    def _read_group(self, group: Sequence[_Place]) -> Iterator[tuple[_Place, Block]]:
        start = group[0].entry.offset
        data = self._source.read(start, group[-1].entry.end)
        for place in group:
            yield place, self._parse(data, place.entry.offset - start, place.entry.size, start)

    def _read_at(self, entry: IndexEntry) -> Block:
        return self._parse(self._source.read(entry.offset, entry.end), 0, entry.size, entry.offset)

    def _read_loaded(self, offset: int) -> Block:
        """Return a block after the last data block, which was read when the file was opened."""
        root = self.trailer.root
        return self._charge(blocks.read_block(self._opened, offset - root, self.trailer.codec, base=root))

    def _parse(self, data: bytes | memoryview, at: int, size: int, base: int) -> Block:
        if size < blocks.HEADER.size:
            raise CorruptFileError("An HFile block is cut short.", offset=base + at)
        return self._charge(blocks.read_block(data[: at + size], at, self.trailer.codec, base=base))

    def _charge(self, block: Block) -> Block:
        """Count the plain bytes of a block against its bytes in the file."""
        self._plain += len(block.payload)
        self._packed += block.packed
        if self._plain > _FREE_BYTES + get_limits().metadata_ratio * self._packed:
            what = f"The blocks of an HFile have {self._plain} bytes, in the file {self._packed}"
            raise_limit_error(CorruptFileError, what, "metadata_ratio", offset=block.offset)
        return block


def read_info(data: bytes | memoryview) -> dict[str, bytes]:
    """Return the file info of an HFile in memory, which includes ``schema``. Raises as ``HFile``."""
    return dict(HFile.from_bytes(data).info)


def _drop_covered(prefixes: Sequence[bytes]) -> list[bytes]:
    """Drop prefixes that begin with another prefix."""
    kept: list[bytes] = []
    for prefix in prefixes:
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


def _find_last(prefix: bytes) -> bytes | None:
    """Return the least key after all keys with a prefix; None if there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
