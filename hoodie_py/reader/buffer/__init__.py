"""Log records by key: folding, spilling, aligning of versions."""
