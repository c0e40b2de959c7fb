"""PySpark looks in top-level modules called pyspark_* for a DefaultSource, and so finds the format "hoodie" by itself."""

from hoodie_py.spark.source import HoodieSource as DefaultSource

__all__ = ["DefaultSource"]
