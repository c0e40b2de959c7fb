"""Where the numbers of a campaign are saved: a JSON file, whose folder may be missing in a fresh checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def save_json(path: Path, value: Any) -> None:
    """Write a value as JSON; missing folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
