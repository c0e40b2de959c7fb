"""Files of a write: new base files, rewritten ones, log files, markers."""
