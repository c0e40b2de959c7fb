"""Locks and heartbeats."""
