"""The indexes of the metadata table, as a commit keeps them up and as a build makes them."""
