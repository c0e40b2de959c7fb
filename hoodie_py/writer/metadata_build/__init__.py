"""Build partitions of the metadata table from a table as it is, and drop them."""
