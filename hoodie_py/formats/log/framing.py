"""Splits the bytes of a log file into blocks, and encodes blocks. It neither decodes their content nor opens files.

A log file consists of adjacent blocks, without a file header (Hudi HoodieLogFormatReader / HoodieLogFormatWriter, log
format version 1, the only one that supported writers produce; integers are big-endian):

    magic "#HUDI#"                                         6 bytes
    size of everything that follows this field             int64
    log format version (1)                                 int32
    block type                                             int32
    headers: count int32, then key int32, length int32, UTF-8 text for each
    content length int64, content
    footers: like headers; no keys exist, so the count is 0
    reverse pointer: size + 6, the block's length less 8   int64

Rules kept:

* A block that was not written whole is *corrupt*: its size cannot be read or passes the end of the data, the reverse
  pointer does not agree, or no block follows it. It extends from its magic to the next magic or the end of the data,
  and reading continues there. So garbage after a good block makes that block corrupt, as in Java.
* Fewer than six bytes at the end are ignored. An empty file has no blocks, and neither has a file with only a magic.
* A block that was written whole but is inconsistent inside is an error: skipping it would lose records silently.
* Every length is checked against the block before memory is allocated for it.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.limits import Limits, get_limits, raise_limit_error

MAGIC = b"#HUDI#"
LOG_FORMAT_VERSION = 1
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_ENTRY = struct.Struct(">ii")
_SMALLEST_WINDOW = 1 << 8
_SEARCH_WINDOW = 1 << 20
_ROLLBACK = "0"


class BlockType(IntEnum):
    """Kinds of blocks, by their number on disk (Hudi HoodieLogBlock.HoodieLogBlockType)."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


_DATA_TYPES = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.CDC_DATA})
_NO_FOOTERS = struct.pack(">i", 0)


class HeaderKey(IntEnum):
    """Block headers, by their number on disk (Hudi HoodieLogBlock.HeaderMetadataType)."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One whole block.

    ``offset`` is the offset of its magic in the file. ``size`` is its length on disk, including magic and reverse
    pointer. ``content`` is a view into the data, not a copy.
    """

    type: BlockType
    headers: Mapping[HeaderKey, str]
    offset: int
    content: memoryview
    size: int

    def with_content(self, content: memoryview) -> LogBlock:
        """Return the block with another content; ``dataclasses.replace`` takes three times as long."""
        return LogBlock(self.type, self.headers, self.offset, content, self.size)

    @property
    def instant_time(self) -> str | None:
        """Instant that wrote the block."""
        return self.headers.get(HeaderKey.INSTANT_TIME)

    @property
    def target_instant_time(self) -> str | None:
        """Instant whose blocks a rollback block cancels."""
        return self.headers.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def schema_text(self) -> str | None:
        """Avro schema (JSON) of the block's records."""
        return self.headers.get(HeaderKey.SCHEMA)

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """Instants whose blocks a log compaction merged into this block; empty for other blocks."""
        text = self.headers.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
        return tuple(instant for part in text.split(",") if (instant := part.strip()))

    @property
    def is_partial(self) -> bool:
        """Whether records contain only the updated columns; a merge keeps the older values of the others."""
        return self.headers.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    @property
    def base_instant_of_positions(self) -> str | None:
        """Instant of the base file in which the record positions are row numbers."""
        return self.headers.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)

    @property
    def record_positions(self) -> str | None:
        """Encoded bitmap of row positions (``positions.decode_positions``)."""
        return self.headers.get(HeaderKey.RECORD_POSITIONS)

    @property
    def is_data(self) -> bool:
        """Whether the block contains records."""
        return self.type in _DATA_TYPES

    @property
    def is_rollback(self) -> bool:
        """Whether the block is a rollback command. Raises UnsupportedFeatureError for other commands."""
        if self.type is not BlockType.COMMAND:
            return False
        command = self.headers.get(HeaderKey.COMMAND_BLOCK_TYPE)
        if command is None:
            raise CorruptFileError("A command block does not say which command it is.", offset=self.offset)
        if command.strip() != _ROLLBACK:
            raise UnsupportedFeatureError(f"Log command {command[:40]!r} is not known.", offset=self.offset)
        return True


@dataclass(frozen=True, slots=True)
class CorruptBlock:
    """A block that was not written whole, from ``offset`` to ``end``; readers skip it."""

    offset: int
    end: int
    reason: str


def iterate_blocks(data: bytes | memoryview | mmap.mmap) -> Iterator[LogBlock | CorruptBlock]:
    """Yield the blocks of one log file in order.

    ``data`` is the whole file; blocks keep views into it.

    Raises:
        CorruptFileError: bytes are not a block, or a whole block is inconsistent.
        UnsupportedFeatureError: the log format version, a block type or a header is unknown.
    """
    view = memoryview(data).cast("B")
    offset = blocks = 0
    most = get_limits()
    while offset + len(MAGIC) <= len(view):
        blocks += 1
        if blocks > most.log_blocks:
            raise_limit_error(
                UnsupportedFeatureError, f"A log file has at least {blocks} blocks", "log_blocks", offset=offset
            )
        if view[offset : offset + len(MAGIC)] != MAGIC:
            raise CorruptFileError("A log block must start with #HUDI#.", offset=offset)
        reason = _find_flaw(view, offset)
        if reason is not None:
            end = _find_magic(view, offset + len(MAGIC))
            if offset + len(MAGIC) < end:
                yield CorruptBlock(offset, end, reason)
            offset = end
            continue
        block = _parse_block(view, offset, most)
        yield block
        offset += block.size


def read_block_at(data: bytes | memoryview | mmap.mmap, offset: int) -> LogBlock:
    """Parse the block at an offset where ``iterate_blocks`` found a whole block.

    Raises:
        CorruptFileError: as for ``iterate_blocks``, or the block is no longer whole.
        UnsupportedFeatureError: as for ``iterate_blocks``.
    """
    view = memoryview(data).cast("B")
    if view[offset : offset + len(MAGIC)] != MAGIC or _find_flaw(view, offset) is not None:
        raise CorruptFileError("A log block has gone or was cut short while its file was read.", offset=offset)
    return _parse_block(view, offset, get_limits())


def _find_flaw(view: memoryview, offset: int) -> str | None:
    """Return why the block at ``offset`` was not written whole; None if it was."""
    after_size = offset + len(MAGIC) + _LONG.size
    if after_size > len(view):
        return "the file ends within the block's size"
    (size,) = _LONG.unpack_from(view, after_size - _LONG.size)
    if size < _LONG.size:
        return f"a block cannot have size {size}"
    end = after_size + size
    if end > len(view):
        return f"the block should end at {end}, the file ends at {len(view)}"
    (pointer,) = _LONG.unpack_from(view, end - _LONG.size)
    if pointer - len(MAGIC) != size:
        return f"the reverse pointer {pointer} does not agree with the size {size}"
    following = view[end : end + len(MAGIC)]
    if len(following) == len(MAGIC) and following != MAGIC:
        return f"what follows the block at {end} is not a block"
    return None


def _find_magic(view: memoryview, start: int) -> int:
    """Return the offset of the next magic at or after ``start``, else the end of the data."""
    window = _SMALLEST_WINDOW  # grows: with a large one, each of many close magics would copy much
    while start + len(MAGIC) <= len(view):
        found = bytes(view[start : start + window]).find(MAGIC)
        if found >= 0:
            return start + found
        start += window - len(MAGIC) + 1
        window = min(2 * window, _SEARCH_WINDOW)
    return len(view)


class _BlockCursor:
    """Reads the fields of one block in order, and never past ``end``."""

    __slots__ = ("block", "end", "offset", "view")

    def __init__(self, view: memoryview, block: int, offset: int, end: int) -> None:
        self.view = view
        self.block = block
        self.offset = offset
        self.end = end

    def skip(self, length: int, what: str) -> int:
        """Step over ``length`` bytes and return the offset of the first one."""
        start = self.offset
        if length < 0 or length > self.end - start:
            message = f"A log block's {what} does not fit into the block ({length} bytes, {self.end - start} left)."
            raise CorruptFileError(message, block_offset=self.block, offset=start)
        self.offset = start + length
        return start

    def read_int32(self, what: str) -> int:
        value: int = _INT.unpack_from(self.view, self.skip(_INT.size, what))[0]
        return value

    def read_int64(self, what: str) -> int:
        value: int = _LONG.unpack_from(self.view, self.skip(_LONG.size, what))[0]
        return value


def _parse_block(view: memoryview, offset: int, most: Limits) -> LogBlock:
    start = offset + len(MAGIC) + _LONG.size
    (size,) = _LONG.unpack_from(view, offset + len(MAGIC))
    cursor = _BlockCursor(view, offset, start, start + size - _LONG.size)
    version = cursor.read_int32("version")
    if version != LOG_FORMAT_VERSION:
        message = f"Log format version {version} is not supported, only version {LOG_FORMAT_VERSION} is."
        raise UnsupportedFeatureError(message, offset=offset)
    block_type = _parse_block_type(cursor.read_int32("type"), offset)
    headers = _read_headers(cursor, most)
    length = cursor.read_int64("content length")
    content_start = cursor.skip(length, "content")
    if length > most.block_bytes:
        raise_limit_error(UnsupportedFeatureError, f"A log block has {length} bytes", "block_bytes", offset=offset)
    if cursor.read_int32("footer count") != 0:
        raise UnsupportedFeatureError("The log block has footers, and none are known.", offset=offset)
    if cursor.offset != cursor.end:
        message = f"{cursor.end - cursor.offset} bytes of the log block are not accounted for."
        raise CorruptFileError(message, block_offset=offset, offset=cursor.offset)
    content = view[content_start : content_start + length]
    return LogBlock(block_type, headers, offset, content, len(MAGIC) + _LONG.size + size)


def _parse_block_type(number: int, offset: int) -> BlockType:
    try:
        block_type = BlockType(number)
    except ValueError:
        raise UnsupportedFeatureError(f"Log block type {number} is not known.", offset=offset) from None
    if block_type is BlockType.CORRUPT:
        raise CorruptFileError("A block on disk calls itself a corrupt block.", offset=offset)
    return block_type


def _read_headers(cursor: _BlockCursor, most: Limits) -> dict[HeaderKey, str]:
    count = cursor.read_int32("header count")
    if count < 0:
        raise CorruptFileError(f"A log block cannot have {count} headers.", offset=cursor.block)
    if count > most.log_headers:
        raise_limit_error(CorruptFileError, f"A log block has {count} headers", "log_headers", offset=cursor.block)
    headers: dict[HeaderKey, str] = {}
    for _ in range(count):
        number, length = _ENTRY.unpack_from(cursor.view, cursor.skip(_ENTRY.size, "header entry"))
        start = cursor.skip(length, "header text")
        try:
            headers[HeaderKey(number)] = str(cursor.view[start : start + length], "utf-8")
        except UnicodeDecodeError:
            message = "A log block's header is not UTF-8."
            raise CorruptFileError(message, block_offset=cursor.block, offset=start) from None
        except ValueError:
            message = f"Log block header {number} is not known."
            hint = "A newer Hudi may have written it."
            raise UnsupportedFeatureError(message, offset=cursor.block, hint=hint) from None
    return headers


def encode_block(block_type: BlockType, headers: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """Encode one block; a log file consists of adjacent blocks.

    Headers are usually INSTANT_TIME (the instant of the writing commit) and SCHEMA (the records' Avro schema as JSON,
    with the meta fields), in delete blocks too.
    """
    texts = [(key, text.encode()) for key, text in headers.items()]
    body = struct.pack(">iii", LOG_FORMAT_VERSION, block_type, len(texts))
    body += b"".join(struct.pack(">ii", key, len(text)) + text for key, text in texts)
    size = len(body) + 8 + len(content) + len(_NO_FOOTERS) + 8
    end = _NO_FOOTERS + struct.pack(">q", len(MAGIC) + size)
    return b"".join((MAGIC, struct.pack(">q", size), body, struct.pack(">q", len(content)), content, end))
