"""HFile: one open HFile, read block by block (Hudi ``HFileReaderImpl``, ``HoodieNativeAvroHFileReader``).

Opening reads the end of the file: trailer, root index, names of meta blocks, file info. A look-up of keys then reads
the index blocks and data blocks that may contain them, each once, and keeps none of them.

Four rules keep this safe with hostile files:

* the index is followed for exactly as many levels as the trailer says, and every place is before the root index;
* the offsets of blocks ascend at each level, so that no block is read twice;
* the plain bytes of all blocks together are limited by their bytes in the file;
* a file with another number of entries than the trailer says, with keys out of order, or with keys that contradict the
  index is an error. So if a scan succeeds, look-ups find all that it finds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile import blocks
from hoodie_py.formats.hfile.blocks import Block, MemorySource, Source
from hoodie_py.formats.hfile.data_block import FEWEST_ENTRY_BYTES, DataBlock, Entry, split_data_block
from hoodie_py.formats.hfile.index import Index, IndexEntry, parse_inner_index, parse_meta_index, parse_root_index
from hoodie_py.formats.limits import get_limits, raise_limit_error

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
