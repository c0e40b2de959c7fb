"""Base files with fresh keys: the same rows again, written as much as can be like Java Hudi wrote them."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.rekey import KeyShape

ROW_GROUP_BYTES = 120 << 20  # where Java's writer starts a new row group (hoodie.parquet.block.size)
_BLOOM, _BLOOM_KIND = b"org.apache.hudi.bloomfilter", b"hoodie_bloom_filter_type_code"
_LEAST, _GREATEST = b"hoodie_min_record_key", b"hoodie_max_record_key"
_FILTER_HEADER = 13  # version, hashes, type, bits
_DICTIONARIES = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_KEY, _FILE_NAME = "_hoodie_record_key", "_hoodie_file_name"


def write_copy(source: Path, target: Path, shape: KeyShape, key_column: str, first: int, bases: int) -> int:
    """Write the rows of ``source`` ``bases`` times, each time with other keys, and return how many rows that makes.

    The first time comes first, so that record positions of the logs hold. Compression, dictionaries, types, row groups
    and the size of the footer are those of the source; its bloom filter lets every key through.

    Args:
        source: a base file.
        target: where the new one goes.
        shape: what keys look like.
        key_column: the user's key column.
        first: number of the first copy; the others follow.
        bases: how often the rows are written.
    """
    file = pq.ParquetFile(source)
    rows = file.read()
    footer = file.metadata.metadata
    edges = {copy: shape.marked(copy).encode() for copy in range(first, first + bases)}
    mark = len(shape.mark)
    metadata = {
        **footer,
        _BLOOM: open_filter(footer[_BLOOM], footer.get(_BLOOM_KIND) == b"DYNAMIC_V0"),
        _LEAST: min(edges.values()) + footer[_LEAST][mark:],
        _GREATEST: max(edges.values()) + footer[_GREATEST][mark:],
    }
    together = max(1, ROW_GROUP_BYTES // max(1, source.stat().st_size))  # copies to a row group
    with pq.ParquetWriter(target, rows.schema, **_like(file)) as writer:
        for start in range(first, first + bases, together):
            copies = range(start, min(start + together, first + bases))
            group = pa.concat_tables([_rekeyed(rows, shape, key_column, copy, target.name) for copy in copies])
            writer.write_table(group, row_group_size=group.num_rows)
        writer.add_key_value_metadata(metadata)
    return int(rows.num_rows) * bases


def _rekeyed(rows: pa.Table, shape: KeyShape, key_column: str, copy: int, name: str) -> pa.Table:
    names = pa.chunked_array([pa.repeat(pa.scalar(name), rows.num_rows)])
    fresh = {_KEY: shape.rekey_column(rows[_KEY], copy), _FILE_NAME: names}
    fresh[key_column] = shape.rekey_column(rows[key_column], copy)
    for column, values in fresh.items():
        at = rows.schema.get_field_index(column)
        rows = rows.set_column(at, rows.schema.field(at), values)
    return rows


def _like(file: pq.ParquetFile) -> dict[str, object]:
    """Return writer settings that repeat how a file was written."""
    group = file.metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {
        "version": "1.0",
        "compression": columns[0].compression,
        "use_dictionary": [column.path_in_schema for column in columns if _DICTIONARIES & set(column.encodings)],
        "write_page_index": True,
        "store_schema": False,
    }


def open_filter(text: bytes, dynamic: bool) -> bytes:
    """Set every bit of a bloom filter, so that it rules no key out.

    A filter is a header of 13 bytes, the last four the number of bits, and the bits. A dynamic one (Hudi
    HoodieDynamicBoundedBloomFilter) is such a header, three integers, the last the number of filters, and those.
    """
    data = bytearray(base64.b64decode(text))
    count, at = 1, 0
    if dynamic:
        at = _FILTER_HEADER + 12
        count = int.from_bytes(data[at - 4 : at], "big")
    for _ in range(count):
        start = at + _FILTER_HEADER
        at = start + (int.from_bytes(data[start - 4 : start], "big") + 7) // 8
        if at > len(data):
            break
        data[start:at] = b"\xff" * (at - start)
    if at != len(data):
        raise ValueError("not a bloom filter of that kind")
    return base64.b64encode(bytes(data))
