"""Cleaning: which file slices go, the plan, the run."""
