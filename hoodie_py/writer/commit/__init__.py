"""Writes from tagged records to the commit."""
