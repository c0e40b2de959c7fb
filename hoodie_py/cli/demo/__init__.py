"""``hoodie demo``: a small table that is made, changed, read and compacted."""
