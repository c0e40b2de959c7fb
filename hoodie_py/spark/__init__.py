"""Hudi tables in PySpark: ``spark.read.format("hoodie")``, ``df.write.format("hoodie")``, and quicker functions."""

from __future__ import annotations

from hoodie_py.spark.session import read, register, write

__all__ = ["read", "register", "write"]
