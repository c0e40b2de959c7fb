"""Rows of the command line: input formats, output formats, and the table on a terminal."""
