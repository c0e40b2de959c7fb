"""Encodes row positions in block headers: Base64 of a 64-bit roaring bitmap in its portable form (Hudi LogReaderUtils).

The i-th record of the block belongs to the i-th smallest position. A position is a 0-based row number in the base file
that another header names.
"""

from __future__ import annotations

import binascii
import struct

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.limits import get_limits, raise_limit_error

_BUCKET_COUNT = struct.Struct("<Q")
_SMALLEST_BUCKET = 12


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Encode the positions of a block's records: distinct row numbers, ascending."""
    bitmap = BitMap64(positions.astype(np.uint64))
    bitmap.run_optimize()
    return binascii.b2a_base64(bitmap.serialize(), newline=False).decode()


def decode_positions(text: str, count: int | None = None) -> npt.NDArray[np.int64]:
    """Decode the positions of a block's records.

    They are ascending. ``count`` is the number of records of the block; None if it is not known.

    Raises CorruptFileError if the text is not such a bitmap, or does not have ``count`` positions.
    """
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        raise CorruptFileError("Record positions are not Base64 text.") from None
    if len(data) < _BUCKET_COUNT.size:
        raise CorruptFileError(f"Record positions of {len(data)} bytes are too short.")
    (buckets,) = _BUCKET_COUNT.unpack_from(data)
    if buckets * _SMALLEST_BUCKET > len(data):
        raise CorruptFileError(f"Record positions of {len(data)} bytes cannot have {buckets} buckets.")
    try:
        bitmap = BitMap64.deserialize(data)
    except (ValueError, IndexError, OverflowError, MemoryError):
        raise CorruptFileError("Record positions are not a 64-bit roaring bitmap.") from None
    found = len(bitmap)  # before they are listed: a bitmap of a few bytes can stand for billions of rows
    if count is not None and found != count:
        raise CorruptFileError(f"A block of {count} records has {found} record positions.")
    if found > get_limits().block_records:
        raise_limit_error(CorruptFileError, f"A block has {found} record positions", "block_records")
    positions = np.asarray(bitmap.to_array(), dtype=np.uint64)
    if found and int(positions[-1]) >= 1 << 63:
        raise CorruptFileError(f"Record position {int(positions[-1])} is out of range.")
    if found > 1 and not bool((positions[1:] > positions[:-1]).all()):
        raise CorruptFileError("Record positions are not ascending.")
    return positions.view(np.int64)
