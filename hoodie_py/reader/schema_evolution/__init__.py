"""How the columns of a file become those of a read: by name, or by id."""
