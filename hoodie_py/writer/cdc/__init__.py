"""The change data of a write: the changed rows as records, and as blocks of a change-data (``.cdc``) log file."""
