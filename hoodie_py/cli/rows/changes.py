"""Show change data as text: one line per change, with the record's key and the values that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.cli.values import to_text

_OPERATIONS = {"i": "insert", "u": "update", "d": "delete"}


def describe_changes(changes: pa.Table, key_fields: Sequence[str]) -> pa.Table:
    """Return change data as texts in commit order: commit, operation, key and values.

    ``changes`` has its rows before and after as structs.
    """
    rows = sorted(changes.to_pylist(), key=lambda row: str(row["ts_ms"]))
    lines = [_describe(row["before"] or {}, row["after"] or {}, key_fields) for row in rows]
    return pa.table(
        {
            "commit": pa.array([row["ts_ms"] for row in rows], pa.string()),
            "op": pa.array([_OPERATIONS.get(row["op"], row["op"]) for row in rows], pa.string()),
            "key": pa.array([key for key, _ in lines], pa.string()),
            "values": pa.array([values for _, values in lines], pa.string()),
        }
    )


def _describe(before: Mapping[str, Any], after: Mapping[str, Any], key_fields: Sequence[str]) -> tuple[str, str]:
    """Return the key and the values of a change: all of an insert or delete, only the changed ones of an update."""
    shown = after or before
    key = ", ".join(to_text(_read(shown, name)) for name in key_fields)
    names = [name for name in shown if name not in key_fields]
    if before and after:
        changed = [name for name in names if before.get(name) != after[name]]
        return key, ", ".join(f"{name}: {_quote(before.get(name))} → {_quote(after[name])}" for name in changed)
    return key, ", ".join(f"{name}={_quote(shown[name])}" for name in names)


def _read(row: Mapping[str, Any], name: str) -> Any:
    value: Any = row
    for part in [name] if name in row else name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _quote(value: Any) -> str:
    return "null" if value is None else to_text(value)
