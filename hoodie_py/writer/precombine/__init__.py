"""Merge the versions of one key within a batch."""
