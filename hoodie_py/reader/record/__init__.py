"""Records and their context: keys, ordering values, deletes, row store (RFC-101)."""
