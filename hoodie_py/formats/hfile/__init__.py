"""HFiles, and records in them."""
