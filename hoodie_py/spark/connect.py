"""Spark Connect: the session is elsewhere, and some of what a classic one knows cannot be asked."""

from __future__ import annotations

from typing import Any


def is_connect(spark: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
