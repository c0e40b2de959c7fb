"""Partitions, file groups and file slices at an instant."""
