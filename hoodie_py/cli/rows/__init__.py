"""Rows between the command line and files: input formats, output formats, the table on a terminal."""
