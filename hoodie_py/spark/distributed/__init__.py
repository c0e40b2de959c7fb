"""Writes whose rows stay with Spark's workers."""
