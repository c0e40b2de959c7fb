"""The data source "hoodie" for PySpark, which searches top-level modules named pyspark_* for a DefaultSource."""

from hoodie_py.spark.source import HoodieSource as DefaultSource

__all__ = ["DefaultSource"]
