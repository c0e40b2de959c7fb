"""Tell Spark Connect sessions from classic ones: a Connect session has no SparkContext to ask."""

from __future__ import annotations

from typing import Any


def is_connect(spark: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
