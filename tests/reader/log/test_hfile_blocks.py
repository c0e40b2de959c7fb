"""HFILE_DATA blocks of log files: the rows that were written, in any portions, and errors where a block is damaged."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from hoodie_py import CorruptFileError, HoodieError, HoodieTable
from hoodie_py.formats.hfile.blocks import GZIP
from hoodie_py.formats.hfile.records import decode_hfile_parts
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, encode_block, iterate_blocks
from tests.corpus import load_case
from tests.formats.hfile.layouts import Layout, make_hfile
from tests.hfiles import write_hfile

Corpus = Callable[[str], Path]
TABLES = ("blocks_hfile_mor_v8", "blocks_mixed_mor_v6", "old15_blocks_hfile_mor")
SCHEMA = json.dumps({
    "type": "record", "name": "HoodieMetadataRecord", "fields": [
        {"name": "key", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "s", "type": {"type": "array", "items": "string"}},
    ],
})  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("scan", [{}, {"batch_rows": 1}, {"memory_limit": 1 << 16}])
def test_tables_have_the_rows_that_were_written(name: str, scan: dict[str, Any], corpus: Corpus) -> None:
    """Java's Spark reader breaks on these; the case says what the writes amount to."""
    evident = next(query["evident"] for query in load_case(name)["queries"] if query.get("evident"))
    rows = {row["id"]: row for row in HoodieTable.open(corpus(name)).scan(**scan).to_arrow().to_pylist()}
    assert rows.keys() == evident.keys()
    for key, values in evident.items():
        assert {column: rows[key][column] for column in values} == values


@pytest.mark.parametrize("name", TABLES)
def test_tables_compact_to_the_same_rows(name: str, corpus_copy: Corpus) -> None:
    table = HoodieTable.open(corpus_copy(name))
    columns = [column for column in table.schema.names if column != "_hoodie_file_name"]
    before = sorted(map(repr, table.scan(columns=columns).to_arrow().to_pylist()))
    assert table.compact() is not None
    again = HoodieTable.open(table.uri)
    for kind in ("snapshot", "read_optimized"):
        assert sorted(map(repr, again.scan(columns=columns, query_type=kind).to_arrow().to_pylist())) == before


@pytest.mark.parametrize("name", TABLES)
def test_tables_take_an_upsert(name: str, corpus_copy: Corpus) -> None:
    table = HoodieTable.open(corpus_copy(name))
    rows = table.scan().to_arrow().drop_columns([name for name in table.schema.names if name.startswith("_hoodie_")])
    first = rows.slice(0, 1).set_column(
        rows.schema.get_field_index("ts"), "ts", pa.array([99], rows.schema.field("ts").type)
    )
    table.upsert(first)
    after = {row["id"]: row for row in HoodieTable.open(table.uri).scan().to_arrow().to_pylist()}
    assert len(after) == rows.num_rows
    assert after[first["id"][0].as_py()]["ts"] == 99


def encode(record: dict[str, Any]) -> bytes:
    import io

    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(SCHEMA)), record)
    return out.getvalue()


def make_records(count: int) -> list[dict[str, Any]]:
    return [{"key": "", "n": i if i % 3 else None, "s": ["x" * (i % 5)] * (i % 4)} for i in range(count)]


def content(count: int, layout: Layout | None = None) -> tuple[bytes, list[dict[str, Any]]]:
    records = make_records(count)
    entries = [(b"k%06d" % i, encode(record)) for i, record in enumerate(records)]
    data = write_hfile(entries, schema=SCHEMA, created_ms=0) if layout is None else make_hfile(entries, layout)
    return data, [{**record, "key": f"k{i:06d}"} for i, record in enumerate(records)]


def rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("count", [0, 1, 55, 56, 300])
@pytest.mark.parametrize("size", [1, 400, 1 << 20])
def test_any_portion_gives_the_records_with_their_keys(count: int, size: int) -> None:
    data, expected = content(count, Layout(GZIP, per_block=90, schema=SCHEMA))
    assert rows(decode_hfile_parts(memoryview(data), None, None, size)) == expected
    some = list(decode_hfile_parts(memoryview(data), None, ["n"], size))
    assert rows(iter(some)) == [{"n": row["n"]} for row in expected]
    assert all(batch.schema.names == ["n"] for batch in some)
    assert sum(batch.num_rows for batch in decode_hfile_parts(memoryview(data), None, [], size)) == count


def test_a_column_named_key_that_is_not_the_record_key_is_lost() -> None:
    """Java's writer stores it empty, whatever it was."""
    data, _ = content(3)
    with pytest.raises(CorruptFileError, match="did not keep") as raised:
        rows(decode_hfile_parts(data, None, None, 99, keyed=False))
    assert raised.value.where["column"] == "key"
    assert rows(decode_hfile_parts(data, None, ["n"], 99, keyed=False)) == [{"n": None}, {"n": 1}, {"n": 2}]


def test_a_key_that_the_value_has_stays() -> None:
    data = write_hfile([(b"a", encode({"key": "own", "n": 1, "s": []}))], schema=SCHEMA, created_ms=0)
    assert rows(decode_hfile_parts(data, None, None, 99))[0]["key"] == "own"


def test_the_schema_of_the_header_counts_where_the_file_has_none() -> None:
    data, expected = content(3, Layout(schema=None))
    assert rows(decode_hfile_parts(data, SCHEMA, None, 99)) == expected
    with pytest.raises(CorruptFileError, match="no schema"):
        rows(decode_hfile_parts(data, None, None, 99))


def test_a_block_is_decoded_whole_for_who_shows_it() -> None:
    data, expected = content(70)
    (block,) = iterate_blocks(encode_block(BlockType.HFILE_DATA, {HeaderKey.SCHEMA: SCHEMA}, data))
    assert isinstance(block, LogBlock)
    assert decode_records(block).to_pylist() == expected


def test_values_that_are_no_records_say_which() -> None:
    entries = [(b"k%03d" % i, encode(record)) for i, record in enumerate(make_records(80))]
    entries[70] = (entries[70][0], b"\xff\xff")
    with pytest.raises(CorruptFileError) as raised:
        rows(decode_hfile_parts(make_hfile(entries, Layout(per_block=40, schema=SCHEMA)), None, None, 1 << 20))
    assert raised.value.where["record"] == 30


def test_a_key_that_is_no_text_is_an_error() -> None:
    data = write_hfile([(b"\xff", encode(make_records(1)[0]))], schema=SCHEMA, created_ms=0)
    with pytest.raises(CorruptFileError, match="UTF-8"):
        rows(decode_hfile_parts(data, None, None, 99))


def test_damaged_content_is_an_error_or_gives_as_many_rows() -> None:
    rng = random.Random(11)
    for layout in (None, Layout(GZIP, per_block=9, fan_out=2, schema=SCHEMA)):
        data, expected = content(60, layout)
        for _ in range(600):
            damaged = bytearray(data)
            for place in np.array([rng.randrange(len(data)) for _ in range(rng.choice((1, 1, 3)))]):
                damaged[place] = rng.randrange(256)
            try:
                found = rows(decode_hfile_parts(bytes(damaged), None, None, 500))
            except HoodieError:
                continue
            assert len(found) == len(expected)
