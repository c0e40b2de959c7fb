"""Lance files: where their columns are."""
