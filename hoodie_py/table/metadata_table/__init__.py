"""The metadata table of a table, as its readers and writers use it."""
