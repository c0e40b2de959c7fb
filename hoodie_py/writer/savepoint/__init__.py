"""Savepoints, and the restore of a table to one."""
