"""The metadata table's indexes: their definitions, keys and values."""
