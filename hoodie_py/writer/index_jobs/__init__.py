"""Jobs over whole indexes: build, drop, verify, and the services of the metadata table."""
