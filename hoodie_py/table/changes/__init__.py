"""Change data: what commits changed, as rows before and after."""
