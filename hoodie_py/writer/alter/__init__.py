"""Alter a table's columns by schema-on-read."""
