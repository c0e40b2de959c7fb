"""Names of the fields of change records, in change logs and in queries of changes (Hudi ``HoodieCDCUtils``)."""

from __future__ import annotations

OP, KEY, TIME, BEFORE, AFTER = "op", "record_key", "ts_ms", "before", "after"
