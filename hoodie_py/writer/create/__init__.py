"""New tables."""
