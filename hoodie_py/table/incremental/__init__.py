"""Queries of the rows that a range of commits wrote."""
