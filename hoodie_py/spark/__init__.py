"""Hudi tables in PySpark: ``spark.read.format("hoodie")``, ``df.write.format("hoodie")``, and faster functions."""

from __future__ import annotations

from hoodie_py.spark.session import delete, merge_into, read, register, update, write

__all__ = ["delete", "merge_into", "read", "register", "update", "write"]
