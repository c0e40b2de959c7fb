"""Jobs over whole indexes: build, drop, verify, and the table services of the metadata table."""
