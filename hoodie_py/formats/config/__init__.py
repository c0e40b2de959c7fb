"""``hoodie.properties`` and the settings derived from it."""
