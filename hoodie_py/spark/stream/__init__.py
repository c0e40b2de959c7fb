"""Streams that Spark reads from a table: ``spark.readStream.format("hoodie")``."""
