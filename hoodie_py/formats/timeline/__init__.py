"""The files of the timeline: instants, commit metadata, plans and results of table services, archives."""
