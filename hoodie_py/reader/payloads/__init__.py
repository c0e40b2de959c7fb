"""Java's payload classes as mergers over columns."""
