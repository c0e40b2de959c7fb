"""Hudi tables in PySpark: ``spark.read.format("hoodie").load(path)``."""

from __future__ import annotations

from hoodie_py.spark.session import read, register

__all__ = ["read", "register"]
