"""Incremental queries: the rows that a range of commits wrote."""
