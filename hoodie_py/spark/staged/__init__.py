"""Writes of the data source, batches and streams, whose rows workers stage first."""
