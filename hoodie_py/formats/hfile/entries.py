"""Decode the entries of an HFile: keys and values in the order of the file (Hudi HFileReaderImpl).

The rule: data blocks lie back to back from the start of the file to its index. Blocks of inner indexes, meta values and
bloom filters may lie between them and are passed over. Entries are puts without versions, as all writers of Hudi make
them; others are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile.hfile import DATA_BLOCK, KEY_END, MAX_CONTENT_BYTES, Entry, read_block, read_trailer

_OTHER_BLOCKS = (b"IDXLEAF2", b"IDXINTE2", b"METABLKc", b"BLMFBLK2")
_LENGTHS = struct.Struct(">ii")
_ROW_LENGTH = struct.Struct(">h")


def read_hfile(data: bytes | memoryview) -> list[Entry]:
    """Return all entries of an HFile.

    Raises:
        CorruptFileError: the bytes are not an HFile, or a damaged one.
        UnsupportedFeatureError: blocks compressed otherwise than by gzip, entries of other kinds than puts, or content
            of more than 1 GiB.
    """
    view = memoryview(data)
    trailer = read_trailer(view)
    entries: list[Entry] = []
    at = total = 0
    while at < trailer.data_end:
        magic, payload, end = read_block(view, at, trailer.codec)
        if magic == DATA_BLOCK:
            total += len(payload)
            if total > MAX_CONTENT_BYTES:
                raise UnsupportedFeatureError("An HFile of more than 1 GiB is not read at once.")
            entries += _read_entries(payload, at)
        elif magic not in _OTHER_BLOCKS:
            raise CorruptFileError(f"An HFile has a block {magic!r} among its data.", offset=at)
        at = end
    if len(entries) != trailer.entries:
        raise CorruptFileError(f"An HFile of {trailer.entries} entries has {len(entries)}.")
    return entries


def _read_entries(payload: bytes, offset: int) -> Iterator[Entry]:
    at, end = 0, len(payload)
    while at < end:
        if at + _LENGTHS.size > end:
            raise CorruptFileError("An HFile entry is cut short.", block_offset=offset, offset=at)
        key_size, value_size = _LENGTHS.unpack_from(payload, at)
        start = at + _LENGTHS.size
        stop = start + key_size + value_size
        if key_size < _ROW_LENGTH.size + len(KEY_END) or value_size < 0 or stop + 1 > end:
            raise CorruptFileError("An HFile entry does not fit into its block.", block_offset=offset, offset=at)
        (row_size,) = _ROW_LENGTH.unpack_from(payload, start)
        if not 0 <= row_size <= key_size - _ROW_LENGTH.size - len(KEY_END):
            raise CorruptFileError("An HFile key does not fit into its entry.", block_offset=offset, offset=at)
        if payload[start + key_size - 1] != KEY_END[-1]:
            raise UnsupportedFeatureError("HFile entries other than puts are not supported.", offset=offset)
        if payload[stop] != 0:
            raise UnsupportedFeatureError("HFile entries with versions are not supported.", offset=offset)
        row = start + _ROW_LENGTH.size
        yield payload[row : row + row_size], payload[start + key_size : stop]
        at = stop + 1
