"""The timeline of a table: active, archived, and time travel."""
