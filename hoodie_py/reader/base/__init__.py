"""The base file of a slice, and how its rows meet log records."""
