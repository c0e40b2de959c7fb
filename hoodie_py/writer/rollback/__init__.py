"""Roll back pending instants, and finish rollbacks that any writer began."""
