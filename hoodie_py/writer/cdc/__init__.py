"""Change data of a write: which rows it changed, as records and as blocks of a change-data (``.cdc``) log file."""
