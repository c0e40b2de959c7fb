"""Create tables."""
