"""HFiles, of which the metadata table is made: whole files, look-ups, and each kind of block by itself."""

from __future__ import annotations

import zipfile
from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.hfile.blocks import (
    BZIP2,
    DATA_BLOCK,
    GZIP,
    INNER_INDEX,
    LEAF_INDEX,
    LZ4,
    NO_COMPRESSION,
    ROOT_INDEX,
    SNAPPY,
    ZSTD,
    Block,
    decompress,
)
from hoodie_py.formats.hfile.bootstrap_index import read_hfile
from hoodie_py.formats.hfile.data_block import split_data_block
from hoodie_py.formats.hfile.protobuf import read_fields
from hoodie_py.formats.hfile.reader import HFile, parse_inner_index, parse_meta_index, parse_root_index
from tests.corpus import PACKAGED
from tests.formats.hfile.layouts import COMPRESS, Layout, encode_entry, make_hfile
from tests.formats.log_writer import unsigned
from tests.hfiles import write_hfile

ENTRIES = [(b"key1", b"value"), (b"key2", b""), (b"longer-key-3", bytes(range(60)))]
MANY = [(b"%05d" % number, b"v" * 20) for number in range(60)]
CODECS = (NO_COMPRESSION, GZIP, SNAPPY, LZ4, BZIP2, ZSTD)
_PLAIN = 300  # bytes that a block of the fuzzer's says to have


def seeds() -> list[bytes]:
    """HFiles of none, few and many entries, of every codec and several levels; Java's; blocks."""
    few = [write_hfile(ENTRIES[:count], schema='"bytes"', created_ms=5) for count in range(len(ENTRIES) + 1)]
    laid_out = [make_hfile(MANY, Layout(codec, per_block=7, meta={"bloomFilter": b"x"})) for codec in CODECS]
    deep = [make_hfile(MANY, Layout(GZIP, per_block=2, fan_out=fan_out, hbase=True)) for fan_out in (2, 4, 6)]
    blocks = [COMPRESS[codec](b"plain " * (_PLAIN // 6)) for codec in CODECS]
    return [*few, *laid_out, *deep, *blocks, b"".join(encode_entry(*entry) for entry in ENTRIES), *_java()]


def _java() -> list[bytes]:
    with zipfile.ZipFile(PACKAGED / "mdt_files_mor_v9" / "table.zip") as archive:
        return [archive.read(name) for name in archive.namelist() if name.endswith(".hfile")]


def parse(data: bytes) -> None:
    """Read entries, look keys up, read facts; parse each kind of block, and protobuf fields."""
    with suppress(HoodieError):
        entries = read_hfile(data)
        assert sum(len(key) + len(value) for key, value in entries) <= 1 << 30
        _look_up(data, entries)
    with suppress(HoodieError):
        hfile = HFile.from_bytes(data)
        hfile.read_meta("bloomFilter")
        assert hfile.schema_text is None or hfile.schema_text.isprintable() or hfile.schema_text
    _parse_blocks(data)
    with suppress(HoodieError):
        assert sum(1 for _ in read_fields(data)) <= len(data)
    with suppress(HoodieError):
        list(read_fields(unsigned(len(data) << 3 | 2) + data))


def _look_up(data: bytes, entries: list[tuple[bytes, bytes]]) -> None:
    """What a scan has, look-ups find."""
    hfile = HFile.from_bytes(data)
    wanted = sorted({key for key, _ in entries[::3]})
    found = [entry for block in hfile.select_keys(wanted) for entry in block.iterate_entries()]
    assert found == [entry for entry in entries if entry[0] in set(wanted)]
    prefixes = sorted({key[:2] for key in wanted})
    some = [entry for block in hfile.select_prefixes(prefixes) for entry in block.iterate_entries()]
    assert some == [entry for entry in entries if entry[0].startswith(tuple(prefixes))]


def _parse_blocks(data: bytes) -> None:
    for magic, read in (
        (DATA_BLOCK, split_data_block),
        (LEAF_INDEX, lambda block: parse_inner_index(block, 1 << 20, leaf=True)),
        (INNER_INDEX, lambda block: parse_inner_index(block, 1 << 20, leaf=False)),
        (ROOT_INDEX, lambda block: parse_root_index(block, data[0] if data else 0, 1 << 20)),
        (ROOT_INDEX, lambda block: parse_meta_index(block, data[0] if data else 0, 1 << 20)),
    ):
        with suppress(HoodieError):
            read(Block(magic, data, 0, len(data), len(data)))
    for codec in CODECS:
        with suppress(HoodieError):
            assert len(decompress(codec, data, _PLAIN, offset=0)) == _PLAIN
