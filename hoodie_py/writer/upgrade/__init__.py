"""Upgrades and downgrades of tables from one table version to another."""
