"""One module for each command of ``hoodie``."""
