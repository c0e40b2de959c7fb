"""Care for Spark's Python workers: they import modules once and then serve many queries.

Tell Spark Connect sessions from classic ones: a Connect session has no SparkContext to ask.
"""

from __future__ import annotations

import gc
from functools import cache
from typing import Any


@cache
def freeze_imports() -> None:
    """Exempt all imported objects from garbage collection; call this when the first query is done.

    Spark keeps its Python processes, and each runs a full garbage collection after every task and every planning step.
    The tens of thousands of objects that imports make live as long as the process, and scanning them takes about as
    long as planning a query. The cache makes later calls do nothing.
    """
    gc.collect()
    gc.freeze()


def is_connect(spark: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
