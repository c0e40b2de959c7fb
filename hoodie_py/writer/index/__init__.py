"""Find the file group of a record key: look-ups in files and indexes, buckets, tagging."""
