"""Log files: framing, block headers, record positions."""
