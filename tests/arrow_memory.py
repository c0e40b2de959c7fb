"""How much memory Arrow has given out."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pyarrow as pa


def watched() -> Callable[[], int]:
    """Return what says how many more bytes are given out than now; what earlier tests left to be collected is gone."""
    gc.collect()
    before = pa.total_allocated_bytes()
    return lambda: int(pa.total_allocated_bytes()) - before
