"""Arrow's compute functions, called by their names.

``pyarrow.compute`` makes a Python function with its documentation for each: 2 MB and a fortieth of a second that
a read has no use for, and methods such as ``Array.take`` and ``Array.cast`` import it.  The functions themselves are in
``pyarrow._compute``, in all versions of pyarrow that this package runs on; that module is not public, and if a later
pyarrow has them elsewhere, they are found through ``pyarrow.compute``.

To look a function up lets go of Python's lock once more than to call it, and where other threads are at work each time
takes longer than a small array does; so it is looked up once.
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
    """Return what an Arrow function makes of some arrays, batches or scalars.

    Args:
        name: one of ``pyarrow.compute.list_functions()``.
        values: its arguments.
        options: of that function; None for its defaults.

    Raises:
        pyarrow.ArrowException: as the function does.
    """
    return _function(name).call(list(values), options)


_function = cache(_functions.get_function)


def take(values: Any, indices: pa.Array) -> Any:
    """Return the values of an array, or the rows of a batch, at some places; ArrowIndexError where there is none."""
    return call("take", values, indices)


def keep_where(values: Any, mask: pa.Array) -> Any:
    """Return the values of an array, or the rows of a batch, where a mask is true."""
    return call("filter", values, mask)


def cast(values: Any, type_: pa.DataType) -> Any:
    """Return an array or scalar in another type; ArrowInvalid where a value would lose something."""
    return call("cast", values, options=_functions.CastOptions.safe(type_))


def index_in(values: Any, value_set: pa.Array) -> Any:
    """Return for each value where in a set it is; null where it is not."""
    return call("index_in", values, options=_functions.SetLookupOptions(value_set))
