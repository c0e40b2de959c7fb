"""Distributed writes, whose rows stay with Spark's workers."""
