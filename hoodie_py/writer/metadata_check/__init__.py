"""Check that a metadata table says what the table's files say."""
