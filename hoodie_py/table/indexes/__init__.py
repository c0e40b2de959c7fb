"""The metadata table as reads use it: which files exist, and which of them a query can skip."""
