"""Table services that follow a plan: compaction, log compaction, cleaning."""
