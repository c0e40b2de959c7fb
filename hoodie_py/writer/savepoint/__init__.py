"""Savepoints, and restores to them."""
