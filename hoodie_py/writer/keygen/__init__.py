"""Record keys and partition paths (Hudi's key generators)."""
