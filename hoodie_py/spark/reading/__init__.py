"""Reading in Spark: partitions, readers, Spark's own Parquet reader for slices without logs."""
