"""Care for Spark's Python workers: they import modules once and then serve many queries.

Use a session that runs already, or start one.

Tell Spark Connect sessions from classic ones: a Connect session has no SparkContext to ask.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


@contextmanager
def use_session(start: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """Give the block the running Spark session, or start one and stop it after the block."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    spark = start()
    try:
        yield spark
    finally:
        spark.stop()
