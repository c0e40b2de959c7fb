"""Column by column against record by record, and both against fastavro: random schemas, real blocks, damaged bytes.

Finding records by their lengths: many parts at once against one by one, also where places only look like records.
"""

from __future__ import annotations

import io
import json
import random
import struct
import tracemalloc
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.formats.avro import columnar_decoder as avro_lanes
from hoodie_py.formats.avro.columnar_cursor import BACK, FRONT, RECORDS_AT_ONCE, Budget, Misfit, Source
from hoodie_py.formats.avro.columnar_decoder import (
    RECORDS_TOGETHER,
    Block,
    JoinedBlocks,
    Stretch,
    decode_in_lanes,
    find_record_bounds,
    make_plan,
)
from hoodie_py.formats.avro.data_blocks import AvroSchema, BlockRows, decode_avro_blocks, decode_avro_data
from hoodie_py.formats.log.framing import BlockType
from tests.arrow_memory import watched
from tests.formats.avro.one_by_one import decode_one_by_one as rows
from tests.formats.avro_bytes_cases import Case, cases, content_of, plain_text
from tests.formats.log_writer import raw_data, surrounded, varint
from tests.formats.real_logs import real_blocks

NUMBERS = st.sampled_from([1, 2, 20, 40, 150])
THOROUGH = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


def lanes(
    content: bytes | memoryview, schema: AvroSchema, names: list[str] | None = None, **limits: int
) -> pa.RecordBatch:
    """Decode column by column, or raise Misfit; ``limits`` are attributes of the source."""
    [batch] = joined([content], schema, names, **limits).split()
    return batch


def joined(
    contents: Sequence[bytes | memoryview], schema: AvroSchema, names: list[str] | None = None, **limits: int
) -> BlockRows:
    plan = make_plan(schema.record, None if names is None else frozenset(names))
    blocks = JoinedBlocks([Block(memoryview(each), 8, struct.unpack_from(">i", each, 4)[0]) for each in contents])
    for name, value in limits.items():
        assert hasattr(blocks.source, name)
        setattr(blocks.source, name, value)
    decoded = BlockRows(decode_in_lanes(blocks, plan), blocks.counts)
    decoded.batch.validate(full=True)
    return decoded


def same(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Whether two batches are equal, with NaN equal to itself."""
    return one.equals(other) or (one.schema.equals(other.schema) and repr(one.to_pylist()) == repr(other.to_pylist()))


def of_each(decoded: Iterable[BlockRows]) -> list[pa.RecordBatch]:
    return [batch for rows in decoded for batch in rows.split()]


def by_fastavro(content: bytes, text: str) -> list[Any]:
    schema = fastavro.parse_schema(json.loads(text))
    stream = io.BytesIO(content[8:])
    records: list[Any] = []
    while head := stream.read(4):
        inner = io.BytesIO(stream.read(*struct.unpack(">i", head)))
        records.append(fastavro.schemaless_reader(inner, schema, None))
        assert not inner.read()
    return records


AT_ONCE = pytest.mark.parametrize("at_once", [RECORDS_AT_ONCE, 5])


@AT_ONCE
@given(cases(), NUMBERS, st.integers())
@THOROUGH
def test_lanes_are_rows_are_fastavro(at_once: int, case: Case, number: int, seed: int) -> None:
    schema = AvroSchema.parse(case.schema)
    values = case.rows(number, seed)
    content = content_of(values)
    batch = lanes(content, schema, records_at_once=at_once)
    assert batch.schema == schema.arrow
    assert batch == rows(content, schema)
    for byte in (b"\0", b"\x01", b"\xff"):
        assert lanes(surrounded([content], byte)[0], schema, records_at_once=at_once) == batch
    assert batch.to_pylist() == [{f"f{i}": v.arrow for i, v in enumerate(row)} for row in values]
    if number <= 40:
        plain = [{f"f{i}": v.plain for i, v in enumerate(row)} for row in values]
        assert by_fastavro(content, plain_text(case.schema)) == plain
    for some in (batch.schema.names[::2], batch.schema.names[1::2], []):
        found = lanes(content, schema, some, records_at_once=at_once)
        assert found == rows(content, schema, some) == decode_avro_data(content, schema, some)


@AT_ONCE
@given(cases(), NUMBERS, st.integers(), st.data())
@THOROUGH
def test_damage_is_seen_by_both_or_reads_the_same(
    at_once: int, case: Case, number: int, seed: int, data: st.DataObject
) -> None:
    schema = AvroSchema.parse(case.schema)
    content = bytearray(content_of(case.rows(number, seed)))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(8, len(content) - 1))
        content[place] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, content[place] ^ 4]))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(8, len(content))) :]
    damaged = bytes(content)
    for some in (None, [], schema.arrow.names[-1:]):
        try:
            expected = rows(damaged, schema, some)
        except HoodieError as error:
            for place in (damaged, surrounded([damaged], b"\xff")[0], surrounded([damaged], b"\x01")[0]):
                with pytest.raises(Misfit):
                    lanes(place, schema, some, records_at_once=at_once)
            with pytest.raises(type(error)):
                decode_avro_data(damaged, schema, some)
            continue
        assert same(decode_avro_data(damaged, schema, some), expected)
        for place in (damaged, surrounded([damaged], b"\xff")[0]):
            with suppress(Misfit):
                assert same(lanes(place, schema, some, records_at_once=at_once), expected)


@given(st.lists(st.tuples(cases(), NUMBERS), min_size=1, max_size=1), st.lists(st.integers(0, 60), max_size=6))
@THOROUGH
def test_blocks_decoded_together(one: list[tuple[Case, int]], numbers: list[int]) -> None:
    case, seed = one[0]
    schema = AvroSchema.parse(case.schema)
    contents = [content_of(case.rows(number, seed)) for number in numbers]
    assert of_each(decode_avro_blocks(contents, schema)) == [rows(content, schema) for content in contents]


@given(cases(), st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers())
@THOROUGH
def test_blocks_that_lie_in_one_buffer_are_decoded_where_they_are(case: Case, numbers: list[int], seed: int) -> None:
    schema = AvroSchema.parse(case.schema)
    contents = [content_of(case.rows(number, seed + number)) for number in numbers]
    expected = [rows(content, schema) for content in contents]
    for byte in (b"\x01", b"\xff"):
        places = surrounded(contents, byte)
        assert joined(places, schema).split() == expected
        source = Source(places, Budget(0))
        assert source.raw.obj is places[0].obj
        assert source.content == sum(map(len, contents))
        assert [
            bytes(source.raw[at : at + len(each)]) for at, each in zip(source.starts, contents, strict=True)
        ] == contents


@pytest.mark.parametrize(("front", "back"), [(FRONT - 1, BACK), (FRONT, BACK - 1), (FRONT, BACK)])
def test_blocks_without_room_around_them_are_copied(front: int, back: int) -> None:
    content = raw_data([record(i) for i in range(100)])
    whole = memoryview(pa.py_buffer(bytes(front) + content + bytes(back))).cast("B")
    place = whole[front : front + len(content)]
    assert (Source([place], Budget(0)).raw.obj is place.obj) == (front == FRONT and back == BACK)
    assert Source([place, memoryview(content)], Budget(0)).raw.obj is not place.obj
    assert lanes(place, SCHEMA) == rows(content, SCHEMA)


FIELDS = [
    {"name": "when", "type": ["null", "string"]},
    {"name": "n", "type": "long"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]
SCHEMA = AvroSchema.parse(json.dumps({"type": "record", "name": "r", "fields": FIELDS}))


def record(number: int, tags: int = 3) -> bytes:
    names = b"".join(varint(2) + b"ab" for _ in range(tags))
    return b"\x02\x1c20260101000000" + varint(number) + (varint(tags) + names if tags else b"") + b"\0"


def test_more_records_than_are_decoded_at_once() -> None:
    number = 2 * RECORDS_AT_ONCE + 7
    content = raw_data([record(i, i % 5) for i in range(number)])
    batch = lanes(content, SCHEMA)
    assert batch.column("n").to_pylist() == list(range(number))
    assert batch == rows(content, SCHEMA)
    small = [raw_data([record(i, 1)] * 700) for i in range(60)]
    batches = of_each(decode_avro_blocks(small, SCHEMA, ["n"]))
    assert [batch.column("n").to_pylist() for batch in batches] == [[i] * 700 for i in range(60)]


@pytest.mark.parametrize(
    ("records", "parts"),
    [(1, 1), (RECORDS_AT_ONCE, 1), (RECORDS_AT_ONCE + 800, 1), (2 * RECORDS_AT_ONCE - 1, 2), (9 * RECORDS_AT_ONCE, 9)],
)
def test_records_are_decoded_in_even_parts(records: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    real = avro_lanes._decode_part

    def decode(source: Any, starts: Any, *rest: Any) -> Any:
        decoded.append(len(starts))
        return real(source, starts, *rest)

    monkeypatch.setattr(avro_lanes, "_decode_part", decode)
    assert lanes(raw_data([record(7)] * records), SCHEMA).num_rows == records
    assert sum(decoded) == records
    assert len(decoded) == parts
    assert max(decoded) - min(decoded) < parts


def test_many_items_in_few_records() -> None:
    content = raw_data([record(i, 40_000 if i % 17 == 3 else i % 3) for i in range(40)])
    assert lanes(content, SCHEMA) == rows(content, SCHEMA)


def schema_of(tree: Any) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": tree}]})


VECTORS = AvroSchema.parse(schema_of({"type": "array", "items": ["null", "float"]}))
FLOATS = AvroSchema.parse(schema_of({"type": "array", "items": "float"}))


@pytest.mark.parametrize("blocks", [1, 3])
def test_more_items_than_are_held_at_once(blocks: int) -> None:
    plain = b"".join(struct.pack("<f", i) for i in range(90))
    some = b"".join(b"\x02" + struct.pack("<f", i) if i % 3 else b"\0" for i in range(90))
    for schema, body in ((FLOATS, plain), (VECTORS, some)):
        if blocks == 1:
            encoded = varint(90) + body + b"\0"
        else:
            encoded = b"".join(varint(-90) + varint(len(body)) + body for _ in range(blocks)) + b"\0"
        content = raw_data([encoded, b"\0"] * 200)
        assert lanes(content, schema, most_items=5000) == rows(content, schema)
        large = raw_data([b"".join([varint(90) + body] * 60) + b"\0", b"\0"])  # one record has more
        assert lanes(large, schema, most_items=5000) == rows(large, schema)


def test_memory_for_many_small_items() -> None:
    schema = AvroSchema.parse(schema_of({"type": "array", "items": "int"}))
    content = raw_data([varint(4_000) + bytes(4_001)] * 600)
    tracemalloc.start()
    try:
        allocated = watched()
        batch = lanes(content, schema)
        peak = tracemalloc.get_traced_memory()[1] + allocated()
    finally:
        tracemalloc.stop()
    assert len(batch.column(0).flatten()) == 600 * 4_000
    assert peak < 120_000_000


def test_columns_of_many_values_lie_in_arrow_memory() -> None:
    fields = [("n", "long"), ("d", "double"), ("even", "string"), ("odd", "string"), ("some", ["null", "int"])]
    text = json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    )
    raw = [
        varint(i << 40)
        + struct.pack("<d", i)
        + varint(6)
        + b"%06d" % i
        + varint(len(odd := b"x" * (i % 7)))
        + odd
        + (varint(1) + varint(i) if i % 3 else varint(0))
        for i in range(5000)
    ]
    content, schema = raw_data(raw), AvroSchema.parse(text)
    assert lanes(content, schema).equals(rows(content, schema))  # a new plan takes the place of an older one
    allocated = watched()
    batch = lanes(content, schema)
    held = allocated()
    assert held > 0.95 * batch.nbytes
    del batch
    assert allocated() == 0


def test_which_of_the_blocks_is_damaged() -> None:
    good, bad = raw_data([record(1)] * 50), raw_data([record(1)] * 40 + [b"\x02\x01"])
    with pytest.raises(CorruptFileError) as caught:
        list(decode_avro_blocks([good, bad, good], SCHEMA))
    assert caught.value.where["content"] == 1
    assert caught.value.where["record"] == 40
    with pytest.raises(CorruptFileError) as caught:
        list(decode_avro_blocks([good, good, b""], SCHEMA))
    assert caught.value.where["content"] == 2


def test_contents_are_let_go_of_as_they_are_decoded() -> None:
    contents = [memoryview(raw_data([record(i)] * (RECORDS_TOGETHER // 2))) for i in range(5)]
    held = [weakref.ref(content) for content in contents]
    waiting = []
    decoded = decode_avro_blocks([contents.pop(0) for _ in held], SCHEMA, ["n"])
    for found in decoded:
        assert len(found.counts) <= 2
        waiting.append(sum(content() is not None for content in held))
    assert waiting == [3, 1, 0]


def test_a_damaged_group_between_good_ones() -> None:
    good = [raw_data([record(i)] * (RECORDS_TOGETHER // 2)) for i in range(5)]
    bad = raw_data([record(5)] * 40 + [b"\x02\x01"])
    decoded = decode_avro_blocks([*good[:2], good[2], bad, *good[3:]], SCHEMA)
    assert [batch.column("n")[0].as_py() for batch in of_each([next(decoded), next(decoded)])] == [0, 1, 2]
    with pytest.raises(CorruptFileError) as caught:
        next(decoded)
    assert caught.value.where["content"] == 3


def test_real_blocks_column_by_column() -> None:
    by_schema: dict[str, list[memoryview]] = {}
    for block in real_blocks():
        if block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
            assert block.schema_text
            by_schema.setdefault(block.schema_text, []).append(block.content)
    assert by_schema
    for text, contents in by_schema.items():
        schema = AvroSchema.parse(text)
        every = [rows(bytes(content), schema) for content in contents]
        assert of_each(decode_avro_blocks(contents, schema)) == every
        assert lanes(contents[0], schema) == every[0]
        some = schema.arrow.names[::3]
        assert lanes(contents[-1], schema, some) == every[-1].select(some)


BEGINNING = b"\x02\x2220260101000000000"


def stretches_of(*blocks: list[bytes]) -> tuple[bytes, list[Stretch]]:
    data = bytes(FRONT)
    found: list[Stretch] = []
    for records in blocks:
        data += b"header"
        start = len(data)
        data += b"".join(struct.pack(">i", len(record)) + record for record in records)
        found.append(Stretch(start, len(data), len(records)))
    return data + bytes(BACK), found


def one_by_one(data: bytes, stretches: list[Stretch]) -> tuple[list[int], list[int]]:
    starts: list[int] = []
    ends: list[int] = []
    for stretch in stretches:
        pos = stretch.start
        for _ in range(stretch.count):
            (length,) = struct.unpack_from(">i", data, pos)
            starts.append(pos + 4)
            pos += 4 + length
            ends.append(pos)
        assert pos == stretch.stop
    return starts, ends


def see(data: bytes, stretches: list[Stretch]) -> None:
    starts, ends = find_record_bounds(data, stretches)
    assert (starts.tolist(), ends.tolist()) == one_by_one(data, stretches)


def some_records(pick: random.Random, count: int, *, beginning: bytes = BEGINNING, traps: bool = False) -> list[bytes]:
    records = []
    for _ in range(count):
        body = pick.randbytes(pick.choice([0, 1, 30, 200, 200, 300, 2000 if pick.random() < 0.02 else 100]))
        if traps and pick.random() < 0.5:
            body += pick.choice([b"\0\0\0\x20", b"\0\0\0\0", b"\xff" * 4]) + beginning + pick.randbytes(40)
        records.append(beginning + body)
    return records


@given(st.integers(), st.lists(st.sampled_from([1, 2, 127, 128, 700, 3000]), min_size=1, max_size=4), st.booleans())
def test_as_one_by_one(seed: int, counts: list[int], traps: bool) -> None:
    pick = random.Random(seed)
    see(*stretches_of(*(some_records(pick, count, traps=traps) for count in counts)))


@pytest.mark.parametrize("beginning", [b"", b"\x02", b"\0\0\0\0\0\0"])
def test_records_that_do_not_begin_alike(beginning: bytes) -> None:
    pick = random.Random(1)
    see(*stretches_of(some_records(pick, 2000, beginning=beginning), [b""] * 500, [b"\0"] * 500, [b"\0" * 9] * 500))


def test_a_beginning_that_changes_half_way() -> None:
    pick = random.Random(2)
    later = BEGINNING.replace(b"2026", b"2027")
    see(*stretches_of(some_records(pick, 900) + some_records(pick, 900, beginning=later) + some_records(pick, 900)))


@given(st.integers(), st.integers(150, 900), st.data())
def test_a_wrong_length_is_seen(seed: int, count: int, data: st.DataObject) -> None:
    pick = random.Random(seed)
    whole, (stretch,) = stretches_of(some_records(pick, count))
    damaged = bytearray(whole)
    starts, _ = one_by_one(whole, [stretch])
    place = starts[data.draw(st.integers(0, count - 1))] - 4 + data.draw(st.integers(0, 3))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Misfit):
        find_record_bounds(bytes(damaged), [stretch])


def test_a_wrong_count_is_seen() -> None:
    data, (stretch,) = stretches_of(some_records(random.Random(3), 400))
    for count in (399, 401):
        with pytest.raises(Misfit):
            find_record_bounds(data, [Stretch(stretch.start, stretch.stop, count)])
    for stop in (stretch.stop - 1, stretch.stop + 1):
        with pytest.raises(Misfit):
            find_record_bounds(data, [Stretch(stretch.start, stop, 400)])


def test_most_parts_are_proven_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[int] = []

    def counted(data: bytes, pos: int, stop: int) -> np.ndarray:
        walked.append(stop - pos)
        raise AssertionError

    monkeypatch.setattr("hoodie_py.formats.avro.columnar_decoder._walk", counted)
    see(*stretches_of(some_records(random.Random(4), 5000)))
    assert not walked
