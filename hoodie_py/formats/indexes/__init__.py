"""The keys, values and definitions of the metadata table's indexes."""
