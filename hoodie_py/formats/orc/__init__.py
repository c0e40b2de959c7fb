"""ORC files: the places of their stripes, and the time zone in which they were written."""
