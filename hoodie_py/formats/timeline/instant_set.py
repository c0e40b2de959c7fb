"""A set of instants that is small when pickled: tasks of old tables carry thousands of instants.

Instants are digits. Those of one length are pickled as the differences between neighbours, compressed, so an instant
takes about three bytes instead of twenty. Processes that get the same set many times unpack it once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cached_property, lru_cache

import numpy as np

_MOST_DIGITS = 18  # of an int64

Packed = tuple[int, bytes]
"""The number of digits, and the compressed differences."""


class InstantSet(frozenset[str]):
    """Instants, which compare as strings; equal to a plain set of the same instants."""

    def __reduce__(self) -> tuple[object, ...]:
        return unpack_instants, self._packed

    @cached_property
    def _packed(self) -> tuple[tuple[str, ...], tuple[Packed, ...]]:
        by_length: dict[int, list[int]] = {}
        others = []
        for text in self:
            if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit():
                by_length.setdefault(len(text), []).append(int(text))
            else:
                others.append(text)
        return tuple(sorted(others)), tuple((length, _pack(by_length[length])) for length in sorted(by_length))


@lru_cache(maxsize=4)
def unpack_instants(others: tuple[str, ...], packed: Iterable[Packed]) -> InstantSet:
    """Return the set that was pickled."""
    found = list(others)
    for length, differences in packed:
        numbers = np.cumsum(np.frombuffer(zlib.decompress(differences), np.int64))
        found += [f"{number:0{length}d}" for number in numbers.tolist()]
    return InstantSet(found)


def _pack(numbers: list[int]) -> bytes:
    ordered = np.sort(np.array(numbers, np.int64))
    return zlib.compress(np.diff(ordered, prepend=0).tobytes(), 6)
