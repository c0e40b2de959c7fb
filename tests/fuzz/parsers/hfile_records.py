"""HFILE_DATA blocks of log files: HFiles whose values are Avro records."""

from __future__ import annotations

import json
from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.hfile.blocks import GZIP, SNAPPY
from hoodie_py.formats.hfile.reader import HFile
from hoodie_py.formats.hfile.records import decode_hfile_parts
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from tests.formats.hfile.layouts import Layout, make_hfile
from tests.fuzz.seeds import files, is_log

SCHEMA = json.dumps({
    "type": "record", "name": "r",
    "fields": [{"name": "key", "type": "string"}, {"name": "n", "type": ["null", "long"]}],
})  # fmt: skip


def seeds() -> list[bytes]:
    """Blocks that Java wrote, and small files of our own, with the schema inside and without."""
    java = [
        bytes(block.content)
        for path, data in files("blocks_hfile_mor_v8").items()
        if is_log(path)
        for block in iterate_blocks(data)
        if isinstance(block, LogBlock) and block.type is BlockType.HFILE_DATA
    ]
    entries = [(b"k%03d" % i, b"\0" + (b"\2" + bytes([i % 64]) if i % 3 else b"\0")) for i in range(70)]
    layouts = (Layout(), Layout(schema=None), Layout(GZIP, schema=SCHEMA, per_block=60), Layout(SNAPPY, schema=None))
    return [*java, *(make_hfile(entries, layout) for layout in layouts)]


def parse(data: bytes) -> None:
    """Decode all columns at once and in small parts, and the key alone; the rows are as many as the file says."""
    counts = set()
    for columns, size in ((None, 1 << 20), (None, 100), (["key"], 1 << 20)):
        with suppress(HoodieError):
            batches = list(decode_hfile_parts(data, SCHEMA, columns, size))
            counts.add(sum(batch.num_rows for batch in batches))
    with suppress(HoodieError):
        assert counts <= {HFile.from_bytes(data).entries}
