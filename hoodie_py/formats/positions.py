"""Row positions in block headers: Base64 of a 64-bit roaring bitmap in its portable form (Hudi LogReaderUtils).

The i-th record of the block belongs to the i-th smallest position, a 0-based row number of the base file that another
header names. A bitmap of a few bytes can stand for billions of rows, so the number of positions is known before any of
them is written out.
"""

from __future__ import annotations

import binascii
from functools import partial

import numpy as np
import numpy.typing as npt

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.limits import limits, refuse
from hoodie_py.formats.roaring import decode_bitmap


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Encode the positions of a block's records, which must come in rising order.

    Args:
        positions: row numbers, each once.
    """
    from pyroaring import BitMap64

    bitmap = BitMap64(positions.astype(np.uint64))
    bitmap.run_optimize()
    return binascii.b2a_base64(bitmap.serialize(), newline=False).decode()


def decode_positions(text: str, count: int | None = None) -> npt.NDArray[np.int64]:
    """Decode the positions of a block's records.

    Args:
        text: the header's value.
        count: how many records the block has; None when that is not known.

    Returns:
        The positions, ascending.

    Raises:
        CorruptFileError: not such a bitmap, or not ``count`` positions.

    """
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        raise CorruptFileError("Record positions are not Base64 text.") from None
    return decode_bitmap(data, partial(_allow, count))


def _allow(count: int | None, found: int) -> None:
    if count is not None and found != count:
        raise CorruptFileError(f"A block of {count} records has {found} record positions.")
    if found > limits().block_records:
        refuse(CorruptFileError, f"A block has {found} record positions", "block_records")
