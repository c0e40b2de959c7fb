"""Writes, from rows to the commit: one pipeline, whose work on the rows an engine does."""
