"""ORC files: where their stripes are, and in which time zone they were written."""
