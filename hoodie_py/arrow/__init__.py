"""Small functions over Arrow arrays, columns and fields that every layer above uses."""
