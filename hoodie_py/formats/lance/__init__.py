"""Lance files: the places of their columns."""
