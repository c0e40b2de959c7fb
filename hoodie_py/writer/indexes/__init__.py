"""The metadata table as a commit keeps it: one module for each index."""
