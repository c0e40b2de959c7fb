"""Parquet base files and Parquet log blocks, with the footer that Hudi writes."""
