"""PySpark looks for a DefaultSource in top-level modules called pyspark_*, and so finds the format "hoodie"."""

from hoodie_py.spark.source import HoodieSource as DefaultSource

__all__ = ["DefaultSource"]
