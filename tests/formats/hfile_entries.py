"""Reads the entries of HFiles: so tests check the metadata tables that are written."""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile import hfile
from hoodie_py.formats.hfile.hfile import Entry

_INNER_INDEXES = (b"IDXLEAF2", b"IDXINTE2")
_META = b"METABLKc"


def read_hfile(data: bytes | memoryview) -> list[Entry]:
    """Decode all entries of an HFile in their order.

    Raises:
        CorruptFileError: the bytes are not an HFile, or a damaged one.
        UnsupportedFeatureError: blocks compressed otherwise than by gzip, or entries of other kinds than puts.
    """
    view = memoryview(data)
    _, data_end, count, codec = hfile._read_trailer(view)
    entries: list[Entry] = []
    at = total = 0
    while at < data_end:
        magic, payload, end = hfile._read_block(view, at, codec)
        if magic == hfile._DATA:
            total += len(payload)
            if total > hfile.MAX_CONTENT_BYTES:
                raise UnsupportedFeatureError("An HFile of more than 1 GiB is not read at once.")
            entries += _read_entries(payload, at)
        elif magic not in (*_INNER_INDEXES, _META):
            raise CorruptFileError(f"An HFile has a block {bytes(magic)!r} among its data.", offset=at)
        at = end
    if len(entries) != count:
        raise CorruptFileError(f"An HFile of {count} entries has {len(entries)}.")
    return entries


def _read_entries(payload: bytes, offset: int) -> Iterator[Entry]:
    at, end = 0, len(payload)
    while at < end:
        if at + hfile._LENGTHS.size > end:
            raise CorruptFileError("An HFile entry is cut short.", block_offset=offset, offset=at)
        key_size, value_size = hfile._LENGTHS.unpack_from(payload, at)
        start = at + hfile._LENGTHS.size
        stop = start + key_size + value_size
        if key_size < 2 + len(hfile._KEY_END) or value_size < 0 or stop + 1 > end:
            raise CorruptFileError("An HFile entry does not fit into its block.", block_offset=offset, offset=at)
        (row_size,) = hfile._SHORT.unpack_from(payload, start)
        if not 0 <= row_size <= key_size - 2 - len(hfile._KEY_END):
            raise CorruptFileError("An HFile key does not fit into its entry.", block_offset=offset, offset=at)
        if payload[start + key_size - 1] != hfile._KEY_END[-1]:
            raise UnsupportedFeatureError("HFile entries other than puts are not supported.", offset=offset)
        if payload[stop] != 0:
            raise UnsupportedFeatureError("HFile entries with versions are not supported.", offset=offset)
        yield payload[start + 2 : start + 2 + row_size], payload[start + key_size : stop]
        at = stop + 1
