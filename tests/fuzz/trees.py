"""Bytes as instructions to build JSON values and texts of some vocabulary, for what random bytes never spell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

BUILT = 0xFE  # the first byte of input that is to be built; no UTF-8 text has it
_DEEPEST = 70


def is_built(data: bytes) -> bool:
    """Whether the rest of the data are instructions."""
    return data[:1] == bytes([BUILT])


def tree(data: bytes, words: Sequence[str]) -> Any:
    """Build a JSON value of the words, numbers, lists and objects; the data's end closes what is open."""
    return _value(iter(data[1:]), words, 0)


def text(data: bytes, words: Sequence[str], joint: str = " ") -> str:
    """Build a text of the words, one for each byte."""
    return joint.join(words[byte % len(words)] for byte in data[1:])


def _value(steps: Iterator[int], words: Sequence[str], depth: int) -> Any:
    step = next(steps, None)
    if step is None or depth > _DEEPEST:
        return None
    kind, size = step >> 5, step & 0x1F
    match kind:
        case 0 | 1:
            return words[next(steps, 0) % len(words)]
        case 2:
            return [_value(steps, words, depth + 1) for _ in range(size % 6)]
        case 3 | 4:
            return {words[next(steps, 0) % len(words)]: _value(steps, words, depth + 1) for _ in range(size % 6)}
        case 5:
            return size - 8
        case 6:
            return (True, False, None, 1.5, "", 1 << 40, -1, "\ud800")[size % 8]
    return next(steps, 0) << size
