"""The session and the processes of Spark: frees Python workers of needless work, and starts or recognises sessions."""

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

    Spark's Python workers import modules once and then serve many queries. Each runs a full garbage collection after
    every task and every planning step. The tens of thousands of objects that imports make live as long as the process,
    and scanning them takes about as long as planning a query. The cache makes later calls do nothing.
    """
    gc.collect()
    gc.freeze()


def is_connect(spark: Any) -> bool:
    """Whether a session is a Spark Connect session, which has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def use_session(start: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    """Run the block with the active Spark session, or start one and stop it after the block."""
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
