from __future__ import annotations

import io
import json
import time
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import decode_record, is_container, read_single, vet_schema
from tests.formats.avro_writing import container, encode, long, record_schema, sized

SCHEMA = record_schema("Note", text=["null", "string"], size="long", marks={"type": "array", "items": "int"})
NOTE = {"text": "hé", "size": -3, "marks": [1, 2]}
BODY = encode(SCHEMA, NOTE)


@pytest.mark.parametrize("codec", ["null", "deflate", None])
def test_the_one_record_is_decoded(codec: str | None) -> None:
    data = container(SCHEMA, BODY, codec=codec)
    assert is_container(data)
    assert read_single(data) == NOTE
    assert read_single(data, "Other", "Note") == NOTE


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_files_of_another_writer_are_read(codec: str) -> None:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(SCHEMA), [NOTE], codec=codec)
    assert read_single(stream.getvalue(), "Note") == NOTE


def test_a_header_map_in_several_blocks_with_sizes_is_read() -> None:
    whole = container(SCHEMA, BODY)
    first = sized(b"k") + sized(b"v")
    rewritten = whole[:4] + long(-1) + long(len(first)) + first + whole[4:]
    assert read_single(rewritten) == NOTE


def test_an_empty_block_is_passed_over() -> None:
    whole = container(SCHEMA, BODY)
    assert read_single(whole + long(0) + long(0) + bytes(range(16))) == NOTE


BROKEN = {
    "no magic": b"PAR1" + container(SCHEMA, BODY)[4:],
    "no record": container(SCHEMA),
    "two records": container(SCHEMA, BODY, BODY),
    "two in a block": container(SCHEMA, BODY + BODY, count=2),
    "claims many": container(SCHEMA, BODY, count=2**40),
    "negative count": container(SCHEMA, BODY, count=-1),
    "wrong sync": container(SCHEMA, BODY, sync=bytes(16)),
    "left-over bytes": container(SCHEMA, BODY + b"\0"),
    "cut record": container(SCHEMA, BODY[:-1]),
    "not UTF-8": container(SCHEMA, BODY.replace("é".encode(), b"\xff\xff")),
    "not deflated": container(SCHEMA, BODY, codec="null").replace(sized(b"null"), sized(b"deflate")),
    "no schema": container(SCHEMA, BODY, entries=[]),
    "schema is no JSON": container("{", BODY),
    "schema of no record": container('"int"', long(1)),
    "schema without type": container({"type": "record", "name": "Note", "fields": [{"name": "a"}]}, BODY),
    "recursive schema": container(record_schema("Note", next=["null", "Note"]), long(0)),
    "unknown type": container(record_schema("Note", a="Nothing"), BODY),
    "deep schema": container('{"type":"array","items":' * 5000 + '"int"' + "}" * 5000, BODY),
    "huge header": b"Obj\x01" + long(2**40) + b"\0" * 64,
    "header length": b"Obj\x01" + long(1) + long(2**60) + b"x",
    "negative length": b"Obj\x01" + long(1) + long(-5) + b"x",
    "endless number": b"Obj\x01" + b"\xff" * 40,
    "block length": container(SCHEMA)[:] + long(1) + long(2**62),
    "many blocks": container(SCHEMA, BODY) + (long(0) + long(0) + bytes(range(16))) * 5000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_broken_files_are_refused(data: bytes) -> None:
    with pytest.raises((CorruptFileError, UnsupportedFeatureError)):
        read_single(data, "Note")


def test_a_record_of_another_type_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="Note"):
        read_single(container(SCHEMA, BODY), "HoodieCleanMetadata")


@pytest.mark.parametrize("codec", ["snappy", "zstandard", "nonsense"])
def test_other_codecs_are_named(codec: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=codec):
        read_single(container(SCHEMA, BODY, codec=codec))


NOTHING = {"type": "record", "name": "Nothing", "fields": [{"name": "n", "type": "null"}]}


@pytest.mark.parametrize("items", ["null", NOTHING, {"type": "fixed", "name": "F", "size": 0}])
def test_arrays_of_items_without_bytes_are_refused_before_they_are_counted(items: Any) -> None:
    bomb = container(record_schema("Note", a={"type": "array", "items": items}), long(2**50) + long(0))
    started = time.process_time()
    with pytest.raises(HoodieError):
        read_single(bomb)
    assert time.process_time() - started < 5


def test_an_array_cannot_claim_more_items_than_there_are_bytes() -> None:
    with pytest.raises(CorruptFileError):
        decode_record(long(0) + long(1) + long(2**50), vet_schema(json.dumps(SCHEMA)))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    for candidate in (data, b"Obj\x01" + data, container(SCHEMA, data)):
        try:
            read_single(candidate)
        except HoodieError:
            continue


@given(st.fixed_dictionaries({
    "text": st.none() | st.text(), "size": st.integers(-(2**63), 2**63 - 1),
    "marks": st.lists(st.integers(-(2**31), 2**31 - 1)),
}), st.sampled_from(["null", "deflate"]))  # fmt: skip
def test_records_round_trip(note: dict[str, Any], codec: str) -> None:
    assert read_single(container(SCHEMA, encode(SCHEMA, note), codec=codec)) == note
