"""Scans for dataframe libraries, with projections and filters pushed down; each library is imported when used."""
