"""New instants, and the files that record them on the timeline."""
