"""What is due at a table, and doing it: all table services in one place."""
