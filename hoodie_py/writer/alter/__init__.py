"""Alterations of a table's columns by schema-on-read."""
