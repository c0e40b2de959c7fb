"""``hoodie.properties`` and what follows from it."""
