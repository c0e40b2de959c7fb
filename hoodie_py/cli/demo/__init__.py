"""``hoodie demo``: creates a small table, changes it, reads it and compacts it."""
