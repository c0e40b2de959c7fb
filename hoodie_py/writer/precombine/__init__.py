"""What the versions of one key in a batch become."""
