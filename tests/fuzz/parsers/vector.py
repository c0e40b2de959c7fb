"""Vectors: the footer entry that names them, and bytes as lists. The first two bytes choose the type."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.formats.logical_types.vector import Vector, find_vector, mark_columns, read_columns, write_columns

ELEMENTS = ("FLOAT", "DOUBLE", "INT8")
COLUMNS = (b"v:VECTOR(2)", b"v:VECTOR(128, DOUBLE),w:VECTOR(3, INT8)", b"a:VECTOR( 4 ,float,FIXED_BYTES),")


def seeds() -> list[bytes]:
    """Footer entries as Java writes them, and vectors of every element."""
    return [b"\0\0" + text for text in COLUMNS] + [bytes([at, 2]) + bytes(range(32)) for at in range(3)]


def parse(data: bytes) -> None:
    """Read the bytes as a footer entry, and as values."""
    head, rest = data[:2].ljust(2, b"\0"), data[2:]
    with suppress(HoodieError):
        text = rest.decode("utf-8", "replace")
        found = read_columns(text)
        assert read_columns(write_columns(found)) == found
        schema = pa.schema([pa.field(name, pa.binary()) for name in found])
        marked = mark_columns(schema, {b"hoodie.vector.columns": text.encode()})
        assert {field.name: find_vector(field) for field in marked} == found
    vector = Vector(1 + head[1] % 8, ELEMENTS[head[0] % 3])
    values = [rest[at : at + vector.size] for at in range(0, len(rest), vector.size)]
    for type_ in (pa.binary(), pa.large_binary()):
        with suppress(HoodieError):
            lists = vector.to_lists(pa.array(values, type_))
            lists.validate(full=True)
            assert vector.to_bytes(lists).to_pylist() == values
