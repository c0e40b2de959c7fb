"""Where a record key lies: look-ups in files, buckets, tagging."""
