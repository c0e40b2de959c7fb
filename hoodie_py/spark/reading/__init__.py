"""Reading in Spark: partitions, readers, and Spark's own Parquet reader for slices without logs."""
