"""Makes HFiles in the layouts that HBase's writer can choose: codecs, index levels, meta blocks, shortened keys."""

from __future__ import annotations

import bz2
import gzip
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie_py.formats.avro.binary import encode_varint
from hoodie_py.formats.hfile.blocks import BZIP2, GZIP, HEADER, LZ4, NO_COMPRESSION, SNAPPY, TRAILER_SIZE, ZSTD
from hoodie_py.formats.hfile.data_block import KEY_END, Entry
from hoodie_py.formats.hfile.protobuf import encode_number_field, encode_octets_field

Place = tuple[int, int, bytes]


def hadoop_pieces(codec: str, plain: bytes, most: int = 1 << 18) -> bytes:
    """Hadoop's BlockCompressorStream: groups of one piece each."""
    engine = pa.Codec(codec)
    groups = []
    for start in range(0, len(plain), most):
        part = plain[start : start + most]
        packed = engine.compress(part).to_pybytes()
        groups.append(struct.pack(">ii", len(part), len(packed)) + packed)
    return b"".join(groups)


COMPRESS: Mapping[int, Callable[[bytes], bytes]] = {
    NO_COMPRESSION: lambda plain: plain,
    GZIP: lambda plain: gzip.compress(plain, mtime=0),
    SNAPPY: lambda plain: hadoop_pieces("snappy", plain),
    LZ4: lambda plain: hadoop_pieces("lz4_raw", plain),
    BZIP2: bz2.compress,
    ZSTD: lambda plain: pa.Codec("zstd").compress(plain).to_pybytes(),
}


@dataclass
class Layout:
    """How a file is laid out.

    Attributes:
        codec: the compression's number.
        per_block: entries of a data block.
        fan_out: entries of an index block; above it the index gets another level.
        hbase: whether index keys have HBase's ten bytes more.
        schema: of the values; None for a file without one.
        meta: meta blocks by name.
        facts: more of the file info.
        shorten: makes the index key of a block from the last key before it and its first one.
    """

    codec: int = NO_COMPRESSION
    per_block: int = 4
    fan_out: int = 1000
    hbase: bool = False
    schema: str | None = "S"
    meta: Mapping[str, bytes] = field(default_factory=dict)
    facts: Mapping[str, bytes] = field(default_factory=dict)
    shorten: Callable[[bytes, bytes], bytes] = lambda _, first: first


def encode_entry(key: bytes, value: bytes) -> bytes:
    stored = struct.pack(">h", len(key)) + key + KEY_END
    return struct.pack(">ii", len(stored), len(value)) + stored + value + b"\0"


class FileMaker:
    """Puts blocks one behind the other."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.out = bytearray()

    def add(self, magic: bytes, plain: bytes, size: int | None = None) -> tuple[int, int]:
        """Add a block that says to have ``size`` plain bytes, its own ones unless given; return where it is."""
        packed = COMPRESS[self.layout.codec](plain)
        on_disk = HEADER.size + len(packed)
        sums = bytes(4 * -(-on_disk // 16384))
        head = HEADER.pack(magic, len(packed) + len(sums), len(plain) if size is None else size, -1, 2, 16384, on_disk)
        start = len(self.out)
        self.out += head + packed + sums
        return start, len(self.out) - start

    def encode_key(self, key: bytes) -> bytes:
        return struct.pack(">h", len(key)) + key + (KEY_END if self.layout.hbase else b"")

    def add_inner(self, magic: bytes, places: Sequence[Place]) -> Place:
        entries = [struct.pack(">qi", offset, size) + self.encode_key(key) for offset, size, key in places]
        bounds = [0]
        for each in entries:
            bounds.append(bounds[-1] + len(each))
        plain = struct.pack(f">{len(bounds) + 1}i", len(entries), *bounds) + b"".join(entries)
        return *self.add(magic, plain), places[0][2]

    def finish(self, places: Sequence[Place], entries: int) -> bytes:
        """Add the index levels, the meta blocks and the end."""
        layout, levels = self.layout, 1
        magic = b"IDXLEAF2"
        while len(places) > layout.fan_out:
            parts = [places[at : at + layout.fan_out] for at in range(0, len(places), layout.fan_out)]
            places, magic, levels = [self.add_inner(magic, part) for part in parts], b"IDXINTE2", levels + 1
        metas = [(*self.add(b"METABLKc", content), name.encode()) for name, content in layout.meta.items()]
        root = b"".join(encode_root(offset, size, self.encode_key(key)) for offset, size, key in places)
        return self.end(root, len(places), metas, entries, levels)

    def end(self, root: bytes, count: int, metas: Sequence[Place], entries: int, levels: int) -> bytes:
        root_at, _ = self.add(b"IDXROOT2", root)
        self.add(b"IDXROOT2", b"".join(encode_root(*place) for place in metas))
        facts = {"KEY_VALUE_VERSION": b"\0\0\0\1", **self.layout.facts}
        facts |= {} if self.layout.schema is None else {"schema": self.layout.schema.encode()}
        pairs = (encode_octets_field(1, name.encode()) + encode_octets_field(2, value) for name, value in facts.items())
        message = b"".join(encode_octets_field(1, pair) for pair in pairs)
        info_at, _ = self.add(b"FILEINF2", b"PBUF" + encode_varint(len(message)) + message)
        numbers = {1: info_at, 2: root_at, 5: count, 6: len(metas), 7: entries, 8: levels, 12: self.layout.codec}
        trailer = b"".join(encode_number_field(number, value) for number, value in numbers.items())
        tail = b'TRABLK"$' + encode_varint(len(trailer)) + trailer
        return bytes(self.out) + tail.ljust(TRAILER_SIZE - 4, b"\0") + b"\0\0\0\3"


def encode_root(offset: int, size: int, key: bytes) -> bytes:
    length = len(key)
    raw = length.to_bytes((length.bit_length() + 7) // 8, "big")
    varint = bytes([length]) if length < 128 else bytes([0x90 - len(raw)]) + raw
    return struct.pack(">qi", offset, size) + varint + key


def make_hfile(entries: Sequence[Entry], layout: Layout | None = None) -> bytes:
    """Make an HFile of entries, which are sorted."""
    layout = layout or Layout()
    maker, places = FileMaker(layout), []
    for at in range(0, len(entries), layout.per_block):
        part = entries[at : at + layout.per_block]
        first = part[0][0] if not at else layout.shorten(entries[at - 1][0], part[0][0])
        places.append((*maker.add(b"DATABLK*", b"".join(encode_entry(*each) for each in part)), first))
    return maker.finish(places, len(entries))
