"""Find what is wrong with Avro records that ``columnar_decoder`` refuses: the record, the offset or the column.

The records are stepped over one by one, up to the first that does not take exactly its bytes. If one before it has a
wrong value, such as text that is not UTF-8, halves of these records are decoded, down to the first bad one.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import make_skip_step
from hoodie_py.formats.avro.columnar_cursor import Misfit, Places
from hoodie_py.formats.avro.columnar_decoder import LENGTH_SIZE, Block, decode_places, make_plan
from hoodie_py.formats.avro.schema import Record

_LENGTH = struct.Struct(">i")
_Bounds = tuple[int, int]


def raise_block_fault(block: Block, record: Record, names: frozenset[str] | None, misfit: Misfit) -> NoReturn:
    """Raise the error for a block that was refused; ``names`` are the columns that were decoded, None for all.

    Raises:
        CorruptFileError: ``where`` has the record, and its offset in the content or the column.
        UnsupportedFeatureError: the records have far more values than bytes.
    """
    raise_fault(block.content, _iterate_bounds(block), record, names, misfit)


def raise_fault(
    data: memoryview | bytes, bounds: Iterable[_Bounds], record: Record, names: frozenset[str] | None, misfit: Misfit
) -> NoReturn:
    """Raise the error for records at known starts and ends that were refused. Arguments, errors as
    ``raise_block_fault``.
    """
    whole = array("q")
    broken: CorruptFileError | None = None
    try:
        for bound in _step_over_records(data, bounds, record):
            whole.extend(bound)
    except CorruptFileError as error:
        broken = error
    if broken is None and isinstance(misfit.__cause__, UnsupportedFeatureError):
        raise misfit.__cause__
    places = np.asarray(whole).reshape(-1, 2)
    if len(places) and _find_fault(data, places, record, names) is not None:
        _raise_value_fault(data, places, record, names)
    raise broken or CorruptFileError("The records are not valid Avro.")


def _raise_value_fault(
    data: memoryview | bytes, places: Places, record: Record, names: frozenset[str] | None
) -> NoReturn:
    """Raise the error of the first record with a wrong value; one of the records has one."""
    low, high = 0, len(places)
    while high - low > 1:
        middle = (low + high) // 2
        if _find_fault(data, places[low:middle], record, names) is None:
            low = middle
        else:
            high = middle
    for part in record.fields:
        if names is None or part.name in names:
            fault = _find_fault(data, places[low:high], record, frozenset({part.name}))
            if fault is not None:
                raise fault.locate(record=low, column=part.name) from None
    raise CorruptFileError("The record is not valid Avro.", record=low)


def _iterate_bounds(block: Block) -> Iterator[_Bounds]:
    """Yield where each record starts and ends, by the lengths in front of them."""
    data, end = block.content, block.start
    for number in range(block.count):
        start = end + LENGTH_SIZE
        if start > len(data):
            raise CorruptFileError("The block ends within a record.", record=number, offset=end)
        (length,) = _LENGTH.unpack_from(data, end)
        end = start + length
        if length < 0 or end > len(data):
            message = f"A record of {length} bytes does not fit into its block."
            raise CorruptFileError(message, record=number, offset=start)
        yield start, end
    if end != len(data):
        raise CorruptFileError(f"{len(data) - end} bytes are left over after the last record.", offset=end)


def _step_over_records(data: memoryview | bytes, bounds: Iterable[_Bounds], record: Record) -> Iterator[_Bounds]:
    """Yield the bounds of records that take exactly their bytes; raise the error of the first that does not."""
    steps = [make_skip_step(data, part.type) for part in record.fields if part.type.min_size]
    for number, (start, end) in enumerate(bounds):
        pos = start
        try:
            for step in steps:
                pos = step(pos, end)
        except IndexError:
            raise CorruptFileError("The block ends within a record.", record=number, offset=pos) from None
        except CorruptFileError as error:
            raise error.locate(record=number) from None
        if pos != end:
            message = f"A record of {end - start} bytes takes {pos - start} when decoded."
            raise CorruptFileError(message, record=number, offset=start)
        yield start, end


def _find_fault(
    data: memoryview | bytes, places: Places, record: Record, names: frozenset[str] | None
) -> CorruptFileError | None:
    """Return the error of decoding some records; None if their values are right."""
    first, last = int(places[0, 0]), int(places[-1, 1])
    starts, ends = np.ascontiguousarray(places.T) - first
    try:
        decode_places(memoryview(data)[first:last], starts, ends, make_plan(record, names))
    except Misfit as misfit:
        cause = misfit.__cause__
        if not isinstance(cause, UnsupportedFeatureError):
            return cause if isinstance(cause, CorruptFileError) else CorruptFileError("A value is not valid Avro.")
    return None
