"""Choose the file group that new records go to."""
