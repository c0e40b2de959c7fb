"""Scans, their tasks, and how many are read at once."""
