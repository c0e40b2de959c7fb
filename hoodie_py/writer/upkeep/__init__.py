"""Which table services are due, and the order to run them in."""
