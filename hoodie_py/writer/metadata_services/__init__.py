"""The metadata table's own table services, after a commit."""
