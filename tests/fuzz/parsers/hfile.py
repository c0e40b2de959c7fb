"""HFiles, of which the metadata table is made."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.hfile.entries import read_hfile
from hoodie_py.formats.hfile.protobuf import read_fields
from hoodie_py.formats.hfile.reader import read_info
from hoodie_py.formats.hfile.writer import write_hfile
from tests.formats.log_writer import unsigned

_BLOCK = struct.Struct(">8siiqBii")
ENTRIES = [(b"key1", b"value"), (b"key2", b""), (b"longer-key-3", bytes(range(60)))]


def seeds() -> list[bytes]:
    """HFiles of none, few and many entries, plain and with a gzipped block."""
    plain = [write_hfile(ENTRIES[:count], schema='"bytes"', created_ms=5) for count in range(len(ENTRIES) + 1)]
    many = write_hfile([(b"%05d" % number, b"v" * 20) for number in range(300)], schema='"bytes"', created_ms=5)
    return [*plain, many, _gzipped(plain[-1])]


def _gzipped(data: bytes) -> bytes:
    """The first block gzipped; the rest is left as it is, so this is no valid file but one step away from it."""
    magic, after, size, previous, kind, per, on_disk = _BLOCK.unpack_from(data)
    packed = gzip.compress(data[_BLOCK.size : on_disk], mtime=0)
    head = _BLOCK.pack(magic, len(packed), size, previous, kind, per, _BLOCK.size + len(packed))
    return head + packed + data[_BLOCK.size + after :]


def parse(data: bytes) -> None:
    """Read entries, file info, and protobuf fields."""
    with suppress(HoodieError):
        entries = read_hfile(data)
        assert sum(len(key) + len(value) for key, value in entries) <= 1 << 30
    with suppress(HoodieError):
        read_info(data)
    with suppress(HoodieError):
        assert sum(1 for _ in read_fields(data)) <= len(data)
    with suppress(HoodieError):
        list(read_fields(unsigned(len(data) << 3 | 2) + data))
