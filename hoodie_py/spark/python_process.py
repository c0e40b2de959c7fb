"""The Python process that Spark plans or reads in: imported once, used for many queries."""

from __future__ import annotations

import gc
from functools import cache


@cache
def freeze_imports() -> None:
    """Exempt what is imported by now from garbage collection; call it when a first query has been served.

    Spark keeps its Python processes and has each collect all its garbage after every task and every planning step.
    The tens of thousands of objects that imports leave behind live as long as the process, and looking through them
    takes about as long as planning a query.
    """
    gc.collect()
    gc.freeze()
