"""Catalogs that other engines look tables up in: what the entries of a Hudi table say, and how they are kept true."""
