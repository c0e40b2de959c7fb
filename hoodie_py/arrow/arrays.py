"""Convert between NumPy arrays and Arrow, join, repeat and filter, and call Arrow's compute functions by name.

pyarrow's own conversions (``pa.array``, ``pa.scalar``, ``to_numpy``) import pandas if it is installed, which takes some
tenths of a second and 50 MB. Reads and compactions use this module instead.

``pyarrow.compute`` is not imported either: it makes a documented Python function for each compute function: 2 MB and a
fortieth of a second that a read does not need. Methods such as ``Array.take`` and ``Array.cast`` import it, too. The
functions themselves are in ``pyarrow._compute``, in all versions of pyarrow that this package supports. That module is
not public; if a later pyarrow lacks it, ``pyarrow.compute`` is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

try:
    from pyarrow import _compute as _functions
except ImportError:
    import pyarrow.compute as _functions


def call(name: str, *values: Any, options: Any = None) -> Any:
    """Call a function of ``pyarrow.compute.list_functions()`` with arrays, batches or scalars. Errors are Arrow's."""
    return _function(name).call(list(values), options)


# Looked up once: a look-up releases Python's lock, and while other threads work, getting it back takes longer than a
# small array does.
_function = cache(_functions.get_function)


def take(values: Any, indices: pa.Array) -> Any:
    """Return the values of an array, or the rows of a batch, at some indices. ArrowIndexError: an index is outside."""
    return call("take", values, indices)


def keep_where(values: Any, mask: pa.Array) -> Any:
    """Return the values of an array, or the rows of a batch, where a mask is true."""
    return call("filter", values, mask)


def cast(values: Any, type_: pa.DataType) -> Any:
    """Convert an array or scalar to another type. ArrowInvalid: a value does not fit the type exactly."""
    return call("cast", values, options=_functions.CastOptions.safe(type_))


def index_in(values: Any, value_set: pa.Array) -> Any:
    """Return the index of each value in a set; null if the set does not contain it."""
    return call("index_in", values, options=_functions.SetLookupOptions(value_set))


_TYPES = {np.dtype(str(t)): t for t in (pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64())}
_FLOATS: dict[pa.DataType, np.dtype[Any]] = {
    pa.float16(): np.dtype(np.float16),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
}


def make_bitmap(mask: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Return Arrow's validity bitmap for a mask of valid values; None for None, which means that all are valid."""
    return None if mask is None else pa.py_buffer(np.packbits(mask, bitorder="little"))


def from_numpy(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return booleans or integers as an Arrow array of the same type, null where ``missing`` is set."""
    valid = make_bitmap(None if missing is None else ~missing)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [valid, make_bitmap(values)])
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), buffers)


def from_texts(values: Sequence[str | bytes | None], type_: pa.DataType) -> pa.Array:
    """Return values as ``pa.string()`` or ``pa.binary()``. Raises OverflowError from 2 GiB of bytes on."""
    data = [b"" if value is None else value.encode() if isinstance(value, str) else value for value in values]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int64)
    if offsets[-1] >= 1 << 31:
        raise OverflowError(f"{offsets[-1]} bytes are too many for one array")
    missing = np.array([value is None for value in values], np.bool_)
    valid = make_bitmap(~missing if missing.any() else None)
    buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(type_, len(data), buffers)


@lru_cache(maxsize=64)
def make_text(value: str, type_: pa.DataType) -> pa.Scalar:
    """Return a text as a scalar of ``pa.string()``; unlike ``pa.scalar`` without importing pandas."""
    return from_texts([value], type_)[0]


def make_empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def make_batch_without_columns(rows: int) -> pa.RecordBatch:
    """Return a batch that has rows but no columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def repeat_value(value: Any, type_: pa.DataType, length: int) -> pa.Array:
    """Return an array that repeats one value; nulls for None."""
    if value is None:
        return pa.nulls(length, type_)
    if isinstance(value, pa.Scalar):
        return pa.repeat(cast(value, type_), length)
    if isinstance(value, str) and type_ == pa.string():
        return pa.repeat(from_texts([value], type_)[0], length)  # ``pa.scalar`` would import pandas
    return pa.repeat(pa.scalar(value, type_), length)


def join_chunks(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array; several chunks are copied."""
    if isinstance(values, pa.Array):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)


def join_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of one or more batches of one schema as a single batch (pyarrow 18 lacks concat_batches)."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if not first.num_columns:
        return make_batch_without_columns(sum(batch.num_rows for batch in batches))
    columns = [pa.concat_arrays([batch.column(at) for batch in batches]) for at in range(first.num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)


def filter_rows(batch: pa.RecordBatch, keep: pa.Array) -> pa.RecordBatch:
    """Return the rows of a batch where a mask without nulls is true; a batch may have no columns."""
    return keep_where(batch, keep) if batch.num_columns else make_batch_without_columns(keep.true_count)


def is_valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return for each value whether it is not null."""
    return np.ones(len(array), np.bool_) if not array.null_count else to_booleans(call("is_valid", array))


def to_booleans(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a boolean array; null is False."""
    found = _unpack_bits(array.buffers()[1], array.offset, len(array))
    if array.null_count:
        found &= _unpack_bits(array.buffers()[0], array.offset, len(array))
    return found


def to_numbers(array: pa.Array, null: float = 0) -> npt.NDArray[Any]:
    """Return integers or floats as the NumPy type of the same name, with a number in place of nulls.

    The caller views dates and times as integers first.
    """
    dtype: np.dtype[Any] = _FLOATS.get(array.type) or np.dtype(str(array.type))
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.full(len(array), null, dtype)
    found = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    return np.asarray(np.where(is_valid(array), found, dtype.type(null))) if array.null_count else found


def _unpack_bits(buffer: pa.Buffer | None, offset: int, length: int) -> npt.NDArray[np.bool_]:
    if buffer is None:
        return np.ones(length, np.bool_)
    if not length:
        return np.zeros(0, np.bool_)
    first = offset >> 3
    octets = np.frombuffer(buffer, np.uint8, (offset + length + 7 >> 3) - first, first)
    start = offset & 7
    return np.unpackbits(octets, bitorder="little")[start : start + length].astype(np.bool_)


def number_strings(values: pa.ChunkedArray) -> tuple[pa.Array, np.ndarray]:
    """Number the distinct strings of a column without nulls.

    Return the distinct strings in order of first appearance, and for each entry the number of its string as int64.
    """
    encoded = values.dictionary_encode().chunks
    if not encoded:
        return pa.array([], pa.string()), np.empty(0, np.int64)
    codes = np.concatenate([to_numbers(chunk.indices) for chunk in encoded]).astype(np.int64)
    return encoded[-1].dictionary, codes
