"""Which file group new records go to."""
