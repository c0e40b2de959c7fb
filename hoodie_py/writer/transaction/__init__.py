"""The steps that every change of a table takes: heartbeats, pending instants, the protocol of a commit."""
