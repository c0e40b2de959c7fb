"""Format values as text for a terminal, and as JSON.

Text from a table may contain control characters that change the terminal, so they are escaped. JSON keeps values
exactly: decimals and non-finite floats are strings, binary is base64, times are ISO texts.
"""

from __future__ import annotations

import base64
import math
from datetime import date, datetime, time
from typing import Any

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def escape_controls(text: str, lines: bool = False) -> str:
    """Return a text with control characters escaped; ``lines`` keeps line breaks."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or (lines and c == "\n") else c.encode("unicode_escape").decode("ascii") for c in text
    )


def to_text(value: Any) -> str:
    """Return a value of a table as text for a terminal; null is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{escape_controls(str(k))}: {_to_inner_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return "{" + ", ".join(f"{_to_inner_text(k)}: {_to_inner_text(v)}" for k, v in value) + "}"
        return "[" + ", ".join(map(_to_inner_text, value)) + "]"
    return escape_controls(str(value))


def _to_inner_text(value: Any) -> str:
    return "null" if value is None else to_text(value)


def to_json(value: Any) -> Any:
    """Return a value of a table as a value for ``json.dumps``."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in value):
            return {key: to_json(item) for key, item in value}
        return [to_json(item) for item in value]
    return str(value)


def format_size(count: int | None) -> str:
    """Return a number of bytes with a unit: 4995 is "5.0 KB"; None is empty."""
    if count is None:
        return ""
    size = float(count)
    for unit in _UNITS:
        if size < 999.5 or unit == _UNITS[-1]:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}" if size < 99.95 else f"{size:.0f} {unit}"
        size /= 1000
    raise AssertionError("the last unit takes all")
