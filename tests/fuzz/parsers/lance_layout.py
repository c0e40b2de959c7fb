"""Layouts of Lance files."""

from __future__ import annotations

import struct
from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.hfile.protobuf import encode_number_field, encode_octets_field
from hoodie_py.formats.lance import FOOTER_BYTES, read_footer, read_layout


def make_file(pages: int = 2, rows: int = 5, version: tuple[int, int] = (2, 1), *, nested: bool = False) -> bytes:
    """A file whose pages are zeros."""
    data = bytes(pages * 64)
    fields = [_field("n", 0, -1), _field("s", 1, -1)]
    if nested:
        fields += [_field("a", 2, 1), _field("b", 3, 1)]
    columns = 2 + nested * (2 if version == (0, 3) else 1)
    page = encode_octets_field(1, bytes([0, 32])) + encode_octets_field(2, bytes([20, 30]))  # packed numbers
    column = encode_octets_field(2, page) * min(pages, 1) + encode_octets_field(3, b"") + encode_octets_field(4, b"")
    metadata = encode_octets_field(5, encode_octets_field(1, b"key") + encode_octets_field(2, b"value"))
    schema = b"".join(encode_octets_field(1, each) for each in fields) + metadata
    descriptor = encode_octets_field(1, schema) + encode_number_field(2, rows)
    at = len(data) + len(descriptor)
    places = b"".join(struct.pack("<QQ", at + number * len(column), len(column)) for number in range(columns))
    body = data + descriptor + column * columns
    tables = len(body)
    body += places + struct.pack("<QQ", len(data), len(descriptor))
    footer = struct.pack("<QQQIIHH4s", at, tables, tables + len(places), 1, columns, *version, b"LANC")
    return body + footer


def _field(name: str, number: int, parent: int) -> bytes:
    numbers = encode_number_field(3, number) + encode_number_field(4, parent & (1 << 64) - 1)
    return encode_octets_field(2, name.encode()) + numbers


def seeds() -> list[bytes]:
    """Files of both layouts of columns, without pages, and with nested columns."""
    return [make_file(), make_file(0, 0), make_file(nested=True), make_file(version=(0, 3), nested=True)]


def parse(data: bytes) -> None:
    """Read the footer from a short tail first, then the layout and the places of columns."""
    with suppress(HoodieError):
        tail = data[-FOOTER_BYTES:]
        footer = read_footer(tail, len(data))
        while isinstance(footer, int):
            assert footer > len(tail)
            tail = data[-footer:]
            footer = read_footer(tail, len(data))
        layout = read_layout(data[footer.start :], len(data), footer)
        places = layout.find_ranges(layout.columns)
        assert all(0 <= start < stop <= len(data) for start, stop in places or ())
