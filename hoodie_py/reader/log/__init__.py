"""Log files of a slice: which blocks count, and their records in order."""
