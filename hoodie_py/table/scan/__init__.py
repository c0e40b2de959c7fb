"""Scans, their tasks, and the threads that read them."""
