"""What every change of a table goes through: heartbeats, pending instants, the look after a commit."""
