"""The metadata table as reads ask it: which files there are, and which of them a query can skip."""
