"""Few records: what comes out is what the exact decoder gives, and nothing where that refuses."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro import AvroSchema
from hoodie_py.formats.avro_few import decode_few
from hoodie_py.formats.avro_rows import decode_rows
from hoodie_py.formats.log import BlockType
from tests.formats.avro_bytes_cases import Case, cases, content_of
from tests.formats.log_writer import raw_data, varint
from tests.formats.real_logs import real_blocks

NUMBERS = st.integers(1, 12)
THOROUGH = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


def few(content: bytes, schema: AvroSchema, names: list[str] | None = None) -> pa.RecordBatch | None:
    wanted = None if names is None else frozenset(names)
    batch = decode_few(content, 8, struct.unpack_from(">i", content, 4)[0], schema.record, wanted)
    if batch is not None:
        batch.validate(full=True)
    return batch


def exact(content: bytes, schema: AvroSchema, names: list[str] | None = None) -> pa.RecordBatch:
    wanted = None if names is None else frozenset(names)
    count = struct.unpack_from(">i", content, 4)[0]
    return decode_rows(content, 8, count, schema.record, schema.arrow, wanted)


@given(cases(), NUMBERS, st.integers())
@THOROUGH
def test_few_are_as_the_exact_decoder_has_them(case: Case, number: int, seed: int) -> None:
    schema = AvroSchema.parse(case.schema)
    content = content_of(case.rows(number, seed))
    for names in (None, schema.arrow.names[::2], schema.arrow.names[1:]):
        batch = few(content, schema, names)
        if batch is not None:
            assert batch.schema == exact(content, schema, names).schema
            assert batch == exact(content, schema, names)


@given(cases(), NUMBERS, st.integers(), st.data())
@THOROUGH
def test_nothing_comes_of_damage(case: Case, number: int, seed: int, data: st.DataObject) -> None:
    schema = AvroSchema.parse(case.schema)
    content = bytearray(content_of(case.rows(number, seed)))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(8, len(content) - 1))
        content[place] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, content[place] ^ 4]))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(8, len(content))) :]
    damaged = bytes(content)
    batch = few(damaged, schema)
    if batch is not None:
        assert batch == exact(damaged, schema)


def test_real_blocks() -> None:
    seen = 0
    for block in real_blocks():
        if block.type is not BlockType.AVRO_DATA:
            continue
        schema = AvroSchema.parse(block.schema_text or "")
        content = bytes(block.content)
        if len(content) <= 1 << 14 and struct.unpack_from(">i", content, 4)[0]:
            batch = few(content, schema)
            assert batch is None or batch == exact(content, schema)
            seen += batch is not None
    assert seen > 20


@pytest.mark.parametrize(
    ("type_", "raw"),
    [
        ("string", varint(2) + b"\xff\xfe"),
        ("string", varint(-1)),
        ("string", varint(1 << 40)),
        ("int", varint(1 << 31)),
        ("boolean", b"\x02"),
        ('{"type": "long", "logicalType": "timestamp-millis"}', varint(1 << 62)),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 2}', varint(1) + b"\x64"),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 2}', varint(0)),
        ('{"type": "enum", "name": "e", "symbols": ["A"]}', varint(1)),
        ('{"type": "enum", "name": "e", "symbols": ["A"]}', varint(-1)),
        ('["null", "long"]', varint(2)),
        ('["null", "string"]', varint(-1)),
        ('{"type": "array", "items": "int"}', varint(1 << 50)),
        ('{"type": "map", "values": "int"}', varint(5) + varint(0)),
    ],
)
def test_values_that_are_none(type_: str, raw: bytes) -> None:
    quoted = type_ if type_[0] in "{[" else f'"{type_}"'
    schema = AvroSchema.parse(f'{{"type": "record", "name": "r", "fields": [{{"name": "f", "type": {quoted}}}]}}')
    content = raw_data([raw])
    assert few(content, schema) is None
    with pytest.raises(HoodieError):
        exact(content, schema)
