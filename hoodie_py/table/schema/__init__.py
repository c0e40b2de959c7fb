"""The table's columns at an instant."""
