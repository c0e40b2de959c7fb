"""Make errors about rows of the input. They name the column and the first bad rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_booleans
from hoodie_py.errors import InvalidQueryError

_MOST_ROWS = 5
_MOST_CHARS = 60


def refuse_rows(
    bad: pa.Array | pa.ChunkedArray,
    message: str,
    *,
    column: str,
    values: pa.Array | pa.ChunkedArray | None = None,
    hint: str | None = None,
) -> None:
    """Raise an error if any row is bad.

    ``bad``: bool per row; null counts as good. ``values``: the column's values, shown in the error if given.

    Raises:
        InvalidQueryError: ``where`` contains the column, the number of bad rows, and numbers and values of the first
            ones.
    """
    mask = np.concatenate([to_booleans(chunk) for chunk in _list_chunks(bad)] or [np.zeros(0, bool)])
    at = np.flatnonzero(mask)
    if len(at):
        raise make_rows_error(
            at[:_MOST_ROWS].tolist(), message, column=column, values=values, hint=hint, bad_rows=len(at)
        )


def make_rows_error(
    rows: Sequence[int],
    message: str,
    *,
    column: str,
    values: pa.Array | pa.ChunkedArray | None = None,
    hint: str | None = None,
    bad_rows: int | None = None,
) -> InvalidQueryError:
    """Make the error about bad rows.

    ``rows``: the numbers of the first bad rows. ``bad_rows``: how many there are, if known.
    """
    shown = None if values is None else [_format_value(values[each]) for each in rows]
    return InvalidQueryError(message, hint=hint, column=column, bad_rows=bad_rows, rows=list(rows), values=shown)


def _list_chunks(mask: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return mask.chunks if isinstance(mask, pa.ChunkedArray) else [mask]


def _format_value(value: pa.Scalar) -> str:
    try:
        text = repr(value.as_py())
    except (OverflowError, ValueError):  # a time outside Python's range
        text = f"{value.value} ({value.type})"
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 3]}..."
