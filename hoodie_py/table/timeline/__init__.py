"""The timeline of a table: active, archived, and travel in time."""
