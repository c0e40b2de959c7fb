"""Input rows: their columns, their types, and the conversion to the table's types."""
