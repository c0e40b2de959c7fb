"""Converts the columns of a file to those of a read, by name or by id."""
