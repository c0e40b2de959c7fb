"""Deletes of any shape, stepped over one by one; what they hold is read together (``deletes`` has the format)."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.arrays import from_numpy
from hoodie_py.formats.avro_bytes import read_span, read_varint
from hoodie_py.formats.avro_cursor import FRONT, Budget, Misfit, Source, decode_zigzag
from hoodie_py.formats.delete_values import OrderingKind, read_is_present, read_ordering
from hoodie_py.formats.even_deletes import INT_LIMIT, INTEGER_TAGS, NOT_SHORT, PRESENT, SMALL_KINDS
from hoodie_py.formats.kernels import cast, take

_MANY = 48  # integers that are quicker read together
_IS_SMALL = np.array([kind in SMALL_KINDS for kind in OrderingKind])


@dataclass(frozen=True, slots=True, eq=False)
class WalkedDeletes:
    """Keys, kinds of ordering values, those that are integers (0 elsewhere), and the others by the delete's number."""

    keys: pa.StringArray
    kinds: npt.NDArray[np.int8]
    numbers: npt.NDArray[np.int64]
    others: dict[int, Any]


class DeleteWalker:
    """Steps over deletes, noting where keys and integers lie: these are read together at the end.

    Args:
        payload: of a delete block of version 3, or of several.
    """

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._bounds = array("q")
        self._kinds = bytearray()
        self._places = array("q")  # of integers, zero for other kinds
        self._others: dict[int, Any] = {}

    def walk_deletes(self, pos: int, count: int) -> int:
        """Step over deletes that follow each other from a place on, and return the place behind them.

        Raises:
            CorruptFileError: a delete that is none.
            UnsupportedFeatureError: an ordering value of an unknown type.
            IndexError, struct.error: the payload ends within a delete.
        """
        payload, end = self.payload, len(self.payload)
        note_bound, note_kind, note_place = self._bounds.append, self._kinds.append, self._places.append
        integers = INTEGER_TAGS
        for _ in range(count):
            stop = pos + 2 + (payload[pos + 1] >> 1)
            if payload[pos] != PRESENT or payload[pos + 1] & NOT_SHORT or stop >= end:
                start, stop = self._read_key(pos)
            else:
                start = pos + 2
            note_bound(start)
            note_bound(stop)
            if payload[stop] == 0:
                pos = stop + 1
            elif payload[stop] == PRESENT and not payload[stop + 1] & NOT_SHORT:
                pos = stop + 2 + (payload[stop + 1] >> 1)
            else:
                read_is_present(payload, stop)
                pos = read_span(payload, stop + 1, end)[1]
            kind = integers.get(payload[pos])
            if kind is None:
                pos = self._read_other_ordering(pos)
                continue
            pos += 1
            note_kind(kind)
            note_place(pos)
            while payload[pos] > 0x7F:
                pos += 1
            pos += 1
        return pos

    def _read_key(self, pos: int) -> tuple[int, int]:
        """Read what is no short key."""
        if read_is_present(self.payload, pos) == 0:
            raise CorruptFileError("A delete block has a record without a key.", offset=pos)
        return read_span(self.payload, pos + 1, len(self.payload))

    def _read_other_ordering(self, pos: int) -> int:
        """Read an ordering value that is no integer."""
        kind, value, pos = read_ordering(self.payload, pos)
        if kind is not OrderingKind.NONE:
            self._others[len(self._kinds)] = value
        self._kinds.append(kind)
        self._places.append(0)
        return pos

    def finish(self) -> WalkedDeletes:
        """Return what was stepped over.

        Raises:
            CorruptFileError: a key that is not UTF-8, or a number that is too large for its type.
        """
        kinds = np.frombuffer(self._kinds, np.int8).copy()
        places = np.asarray(self._places)
        numbers = np.zeros(len(kinds), np.int64)
        at = np.flatnonzero(places)
        numbers[at] = _read_integers(self.payload, places[at])
        small = np.flatnonzero(((numbers < -INT_LIMIT) | (numbers >= INT_LIMIT)) & _IS_SMALL[kinds])
        if len(small):
            raise CorruptFileError("A number is too large for its type.", offset=int(places[small[0]]))
        kinds[(kinds == OrderingKind.INT) & (numbers == 0)] = OrderingKind.NONE
        return WalkedDeletes(_gather_keys(self.payload, self._bounds), kinds, numbers, self._others)


def _read_integers(payload: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | list[int]:
    """Read the integers at some places."""
    if len(places) >= _MANY:
        source = Source([payload], Budget(0))
        try:
            return decode_zigzag(source.read_integers(places + FRONT, None)).astype(np.int64)
        except (Misfit, IndexError):
            pass  # which one it is comes out below
    return [read_varint(payload, place)[0] for place in places.tolist()]


def _gather_keys(payload: bytes, bounds: array[int]) -> pa.StringArray:
    """Gather the keys from the payload, given where each starts and stops."""
    count = len(bounds) // 2
    offsets = np.zeros(2 * count + 1, np.int64)
    offsets[:-1] = np.asarray(bounds)
    offsets[-1] = bounds[-1] if count else 0
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(payload)]
    pieces = pa.Array.from_buffers(pa.large_string(), 2 * count, buffers)
    keys = take(pieces, from_numpy(np.arange(0, 2 * count, 2, dtype=np.int64)))
    try:
        keys.validate(full=True)
        return cast(keys, pa.string())
    except pa.ArrowInvalid:
        raise CorruptFileError("A deleted key is not UTF-8.") from None
