"""HFiles and the records of the metadata table in them."""
