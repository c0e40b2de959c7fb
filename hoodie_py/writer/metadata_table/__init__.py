"""The metadata table beside a commit."""
