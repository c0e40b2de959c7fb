"""New instants and the files of the timeline that tell of them."""
