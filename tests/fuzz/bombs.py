"""Small files that ask for much: each is read by a process of its own, ``python -m tests.fuzz.bombs NAME FILE``.

The process ends with the error's message (or "read") and the memory it took; its own limits end it when it takes longer
than some seconds of CPU.
"""

from __future__ import annotations

import faulthandler
import io
import json
import resource
import signal
import struct
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.config.properties import parse_properties
from hoodie_py.formats.deletes.decoder import decode_deletes
from hoodie_py.formats.hfile.blocks import GZIP
from hoodie_py.formats.hfile.bootstrap_index import read_hfile
from hoodie_py.formats.log.framing import MAGIC, iterate_blocks
from hoodie_py.formats.parquet.decoder import decode_parquet_data
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from tests.formats.hfile.layouts import FileMaker, Layout, encode_entry
from tests.formats.log_writer import delete_content, raw_data, rollback, unsigned, varint

CPU_SECONDS = 30
SYNC = b"0123456789abcdef"
_NULLABLE = ["null", "long"]


@dataclass(frozen=True, slots=True)
class Bomb:
    """How to make it, what reads it, and a part of what that says."""

    make: Callable[[], bytes]
    read: Callable[[bytes], Any]
    says: str


def _schema(*types: Any, name: str = "r") -> str:
    fields = [{"name": f"f{i}", "type": type_} for i, type_ in enumerate(types)]
    return json.dumps({"type": "record", "name": name, "fields": fields})


def container(schema: str, body: bytes, *, deflate: bool) -> bytes:
    """An Avro container of one record."""
    if deflate:
        stream = zlib.compressobj(9, zlib.DEFLATED, -15)
        body = stream.compress(body) + stream.flush()
    codec = b"deflate" if deflate else b"null"
    header = b"Obj\1" + varint(2)
    for key, value in ((b"avro.schema", schema.encode()), (b"avro.codec", codec)):
        header += varint(len(key)) + key + varint(len(value)) + value
    return header + b"\0" + SYNC + varint(1) + varint(len(body)) + body + SYNC


def _small_items(*, deflate: bool) -> bytes:
    item = json.loads(_schema("boolean", name="item"))
    count = 3_000_000
    schema = _schema({"type": "array", "items": item}, name="HoodieCommitMetadata")
    return container(schema, varint(count) + bytes(count) + b"\0", deflate=deflate)


def _long_text() -> bytes:
    size = 100 << 20
    return container(_schema("string", name="HoodieCommitMetadata"), varint(size) + bytes(size), deflate=True)


def _hfile() -> bytes:
    """An HFile with a block that decompresses to much more than it has."""
    maker = FileMaker(Layout(GZIP))
    place = maker.add(b"DATABLK*", bytes(600 << 20))
    return maker.finish([(*place, b"key")], 1)


def _small_hfile_blocks() -> bytes:
    """An HFile whose blocks are each within the limit of a block, and together far above what the file has."""
    maker = FileMaker(Layout(GZIP))
    block = encode_entry(b"key", bytes(15 << 20))
    return maker.finish([(*maker.add(b"DATABLK*", block), b"key") for _ in range(40)], 40)


def _nulls() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({f"c{i}": pa.nulls(500_000, pa.int64()) for i in range(40)}), out, compression="zstd")
    return out.getvalue()


def _zeros() -> bytes:
    out = io.BytesIO()
    table = pa.table({"c": pa.array([bytes(1 << 20)] * 200)})
    pq.write_table(table, out, compression="zstd", use_dictionary=False)
    return out.getvalue()


def _avro(schema: str) -> Callable[[bytes], Any]:
    return lambda data: decode_avro_data(data, AvroSchema.parse(schema)).num_rows


_WIDE = json.loads(_schema(*[_NULLABLE] * 5000, name="wide"))
_HUGE = {"type": "fixed", "name": "huge", "size": (1 << 31) - 1}

BOMBS: dict[str, Bomb] = {
    "deflated text": Bomb(_long_text, CommitMetadata.from_bytes, "metadata_ratio"),
    "deflated items": Bomb(lambda: _small_items(deflate=True), CommitMetadata.from_bytes, "metadata_items"),
    "plain items": Bomb(lambda: _small_items(deflate=False), CommitMetadata.from_bytes, "metadata_items"),
    "lists in json": Bomb(lambda: b'{"a":[' + b"[]," * 3_000_000 + b"1]}", CommitMetadata.from_bytes, "metadata_items"),
    "deep json": Bomb(lambda: b'{"a":' * 1_000_000, CommitMetadata.from_bytes, "broken JSON"),
    "many blocks": Bomb(
        lambda: rollback("2", "1") * 300_000, lambda data: len(list(iterate_blocks(data))), "log_blocks"
    ),
    "many magics": Bomb(lambda: MAGIC * 3_000_000, lambda data: len(list(iterate_blocks(data))), "log_blocks"),
    "many torn blocks": Bomb(
        lambda: (MAGIC + b"\0") * 300_000, lambda data: len(list(iterate_blocks(data))), "log_blocks"
    ),
    "a gzipped block": Bomb(_hfile, read_hfile, "metadata_ratio"),
    "many gzipped blocks": Bomb(_small_hfile_blocks, read_hfile, "metadata_ratio"),
    "columns of nulls": Bomb(_nulls, decode_parquet_data, "decoded_ratio"),
    "pages of zeros": Bomb(_zeros, decode_parquet_data, "decoded_ratio"),
    "a struct of nulls": Bomb(
        lambda: raw_data([b"\0"] * 300_000), _avro(_schema(["null", _WIDE])), "more values than they have bytes"
    ),
    "columns without bytes": Bomb(lambda: raw_data([b""] * 500_000), _avro(_schema(*["null"] * 3000)), "read"),
    "a huge fixed": Bomb(lambda: raw_data([b""] * 1000), _avro(_schema(_HUGE)), "when decoded"),
    "many items of nothing": Bomb(
        lambda: raw_data([varint(1 << 62) + b"\0"]), _avro(_schema({"type": "array", "items": "null"})), "take no bytes"
    ),
    "a count of deletes": Bomb(lambda: delete_content(3, varint(1 << 61)), decode_deletes, "does not fit"),
    "a count of kryo deletes": Bomb(
        lambda: delete_content(1, b"\1\0" + b"\xe8\0" + unsigned((1 << 31) - 1)), decode_deletes, "does not fit"
    ),
    "a continued line": Bomb(lambda: b"a" + b"\\\n" * 2_000_000, parse_properties, "read"),
    "a long key": Bomb(lambda: b"a" * (16 << 20), parse_properties, "read"),
    "a record's length": Bomb(lambda: struct.pack(">iii", 3, 1, (1 << 31) - 1), _avro(_schema("long")), "does not fit"),
}


def main(arguments: list[str]) -> None:
    """Read one bomb."""
    name, path = arguments
    data = Path(path).read_bytes()
    read = BOMBS[name].read
    faulthandler.register(signal.SIGPROF, chain=True)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    least = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read(data)
        said = "read"
    except HoodieError as error:
        said = str(error)
    print(json.dumps({"said": said, "bytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - least) << 10}))


if __name__ == "__main__":
    main(sys.argv[1:])
