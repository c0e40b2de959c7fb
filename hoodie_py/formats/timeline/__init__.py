"""Instants, commit metadata, plans and archived timelines."""
