"""Decodes deletes of any layout (``decoder`` documents the format).

The deletes are stepped over one by one, and only the offsets of keys and integers are noted. NumPy and Arrow then read
all of them at once, which is faster than decoding each in Python.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.arrow.compute import cast, take
from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.binary import read_span, read_varint
from hoodie_py.formats.avro.columnar_cursor import FRONT, Budget, Misfit, Source, decode_zigzag
from hoodie_py.formats.deletes.ordering_value import OrderingKind, read_is_present, read_ordering
from hoodie_py.formats.deletes.uniform import INT_LIMIT, INTEGER_TAGS, NOT_SHORT, PRESENT, SMALL_KINDS, DecodedDeletes

_MANY = 48  # from this number of integers on, NumPy is faster than a loop
_IS_SMALL = np.array([kind in SMALL_KINDS for kind in OrderingKind])


class DeleteWalker:
    """Steps over the deletes of one or several payloads of version 3, and notes the offsets of keys and integers.

    ``finish`` reads the noted keys and integers.
    """

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._bounds = array("q")
        self._kinds = bytearray()
        self._places = array("q")  # of integers; 0 for other kinds
        self._others: dict[int, Any] = {}

    def walk_deletes(self, pos: int, count: int) -> int:
        """Step over ``count`` deletes, starting at an offset, and return the offset after them.

        Raises:
            CorruptFileError: the bytes are not a delete.
            UnsupportedFeatureError: an ordering value has an unknown type.
            IndexError, struct.error: the payload ends within a delete.
        """
        # Bound methods, local names, and the usual one-byte lengths first: this loop runs once per delete.
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
        """Read a key whose length takes more than one byte."""
        if read_is_present(self.payload, pos) == 0:
            raise CorruptFileError("A delete block has a record without a key.", offset=pos)
        return read_span(self.payload, pos + 1, len(self.payload))

    def _read_other_ordering(self, pos: int) -> int:
        """Read an ordering value that is not an integer."""
        kind, value, pos = read_ordering(self.payload, pos)
        if kind is not OrderingKind.NONE:
            self._others[len(self._kinds)] = value
        self._kinds.append(kind)
        self._places.append(0)
        return pos

    def finish(self) -> DecodedDeletes:
        """Decode the noted deletes.

        Raises CorruptFileError if a key is not UTF-8, or a number is too large for its type.
        """
        kinds = np.frombuffer(self._kinds, np.int8).copy()
        places = np.asarray(self._places)
        numbers = np.zeros(len(kinds), np.int64)
        at = np.flatnonzero(places)
        numbers[at] = _read_integers(self.payload, places[at])
        small = np.flatnonzero(((numbers < -INT_LIMIT) | (numbers >= INT_LIMIT)) & _IS_SMALL[kinds])
        if len(small):
            raise CorruptFileError("A number is too large for its type.", offset=int(places[small[0]]))
        # The int 0 means "no ordering value", see ``decoder``.
        kinds[(kinds == OrderingKind.INT) & (numbers == 0)] = OrderingKind.NONE
        return DecodedDeletes(_gather_keys(self.payload, self._bounds), kinds, numbers, self._others)


def _read_integers(payload: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | list[int]:
    """Read the integers at some offsets."""
    if len(places) >= _MANY:
        source = Source([payload], Budget(0))
        try:
            return decode_zigzag(source.read_integers(places + FRONT, None)).astype(np.int64)
        except (Misfit, IndexError):
            pass  # the loop below finds the damaged integer and raises its error
    return [read_varint(payload, place)[0] for place in places.tolist()]


def _gather_keys(payload: bytes, bounds: array[int]) -> pa.StringArray:
    """Copy the keys out of the payload; ``bounds`` contains the start and the stop of each key."""
    # All bounds are the offsets of a string array whose even items are the keys, and whose odd items are the bytes
    # between them.
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
