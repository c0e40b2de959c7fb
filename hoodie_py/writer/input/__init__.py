"""Rows on their way in: columns, types, values that fit."""
