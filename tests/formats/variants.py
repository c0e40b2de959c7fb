"""An encoder of variants for tests: Python values to the bytes of the Parquet variant encoding."""

from __future__ import annotations

import struct
from typing import Any


def encode_variant(value: Any, *, large: bool = False) -> tuple[bytes, bytes]:
    """Return metadata and value; numbers are int64 or double. ``large`` takes the wide forms of counts and texts."""
    names: list[str] = sorted(_find_names(value))
    texts = [name.encode() for name in names]
    width = 4 if large else 2
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    head = bytes([1 | 0x10 | (width - 1) << 6]) + len(names).to_bytes(width, "little")
    metadata = head + b"".join(end.to_bytes(width, "little") for end in ends) + b"".join(texts)
    return metadata, _encode(value, {name: at for at, name in enumerate(names)}, large)


def _find_names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_find_names(each) for each in value.values()))
    return set().union(*map(_find_names, value)) if isinstance(value, list) else set()


def _encode(value: Any, names: dict[str, int], large: bool) -> bytes:
    if value is None or isinstance(value, bool):
        return bytes([(0 if value is None else 1 if value else 2) << 2])
    if isinstance(value, int):
        return bytes([6 << 2]) + value.to_bytes(8, "little", signed=True)
    if isinstance(value, float):
        return bytes([7 << 2]) + struct.pack("<d", value)
    if isinstance(value, str):
        data = value.encode()
        short = len(data) < 64 and not large
        return bytes([1 | len(data) << 2]) + data if short else bytes([16 << 2]) + struct.pack("<I", len(data)) + data
    if isinstance(value, list):
        header, ids, items = 3 | (3 | 4 * large) << 2, b"", [_encode(each, names, large) for each in value]
    else:
        ordered = sorted(value)
        header = 2 | (3 | 3 << 2 | large << 4) << 2
        ids = b"".join(names[name].to_bytes(4, "little") for name in ordered)
        items = [_encode(value[name], names, large) for name in ordered]
    ends = [0]
    for item in items:
        ends.append(ends[-1] + len(item))
    count = len(items).to_bytes(4 if large else 1, "little")
    return bytes([header]) + count + ids + b"".join(end.to_bytes(4, "little") for end in ends) + b"".join(items)
