"""The data source "hoodie" for PySpark, which searches top-level modules named pyspark_* for a DefaultSource."""

from hoodie_py.spark.data_source import HoodieSource as DefaultSource

__all__ = ["DefaultSource"]
