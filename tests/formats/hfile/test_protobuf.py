from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.hfile.protobuf import (
    encode_number_field,
    encode_octets_field,
    encode_varint,
    read_fields,
    read_varint,
)

numbers = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(st.integers(1, 1000), numbers | st.binary())))
def test_messages_read_back(fields: list[tuple[int, int | bytes]]) -> None:
    encoded = [
        encode_number_field(number, value) if isinstance(value, int) else encode_octets_field(number, value)
        for number, value in fields
    ]
    assert list(read_fields(b"".join(encoded))) == fields


def test_the_examples_of_the_protobuf_documentation() -> None:
    assert encode_number_field(1, 150) == bytes.fromhex("089601")
    assert encode_octets_field(2, b"testing") == bytes.fromhex("120774657374696e67")
    assert read_varint(b"\x96\x01", 0) == (150, 2)
    assert encode_varint(1) == b"\x01"


@pytest.mark.parametrize("data", [b"\x80", b"\x80" * 11, b"\x08", b"\x12\x05abc", b"\x0d\x01\0\0\0", b"\x09\x01"])
def test_broken_messages_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        list(read_fields(data))
