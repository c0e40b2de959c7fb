"""Rows of scans for dataframe libraries, with their projections and filters pushed down; each is imported when used."""
