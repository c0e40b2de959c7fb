"""Compaction: which slices, the plan, the run."""
