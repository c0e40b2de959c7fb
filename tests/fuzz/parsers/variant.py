"""Variants as JSON: the first byte says how long the metadata are."""

from __future__ import annotations

import json
from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.logical_types.variant_json import print_variant
from tests.formats.variants import encode_variant

VALUES = (
    None, True, 1, -2.5, "text", "long" * 40, [], {}, [1, [2, [None]]], {"a": {"b": [{"c": "é"}]}, "ab": False},
)  # fmt: skip
PRIMITIVES = ((8, 5), (9, 9), (10, 17), (11, 4), (12, 8), (13, 8), (14, 4), (15, 6), (17, 8), (18, 8), (20, 16))


def seeds() -> list[bytes]:
    """Values of every type, in both widths."""
    made = [encode_variant(value, large=large) for value in VALUES for large in (False, True)]
    made += [(b"\x01\x00\x00", bytes([kind << 2, 2, *[0] * (size - 1)])) for kind, size in PRIMITIVES]
    return [bytes([len(metadata)]) + metadata + value for metadata, value in made]


def parse(data: bytes) -> None:
    """Print a value; what is printed is JSON."""
    stop = 1 + (data[0] if data else 0)
    with suppress(HoodieError):
        json.loads(print_variant(data[1:stop], data[stop:]))
