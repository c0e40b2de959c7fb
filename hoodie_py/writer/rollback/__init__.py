"""Rollbacks: ours, and those that somebody began and did not finish."""
