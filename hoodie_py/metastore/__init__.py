"""Catalogs in which other engines look up tables: what the entries of a Hudi table contain, and how they are synced."""
