"""Clustering: rows of small file groups are written anew into larger ones, in an order that helps queries."""
