"""What the partitions of a metadata table hold: keys, values and definitions of indexes."""
