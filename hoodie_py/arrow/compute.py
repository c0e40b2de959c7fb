"""Call Arrow's compute functions by name, without importing ``pyarrow.compute``.

``pyarrow.compute`` makes a documented Python function for each compute function: 2 MB and a fortieth of a second that a
read does not need. Methods such as ``Array.take`` and ``Array.cast`` import it, too. The functions themselves are in
``pyarrow._compute``, in all versions of pyarrow that this package supports. That module is not public; if a later
pyarrow lacks it, ``pyarrow.compute`` is used.
"""

from __future__ import annotations

from functools import cache
from typing import Any

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
