"""Turn a reference table into one that names a user's merger."""

from __future__ import annotations

from pathlib import Path

TABLE = "event_time_updates_mor_v9"
STRATEGY = "0a1b2c3d-0000-4000-8000-000000000001"


def make_custom(where: Path) -> Path:
    """Change the properties of a copy of the table so that it names the strategy, and return its path."""
    properties = where / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("merge.mode=EVENT_TIME_ORDERING", "merge.mode=CUSTOM")
    properties.write_text(f"{text}\nhoodie.record.merge.strategy.id={STRATEGY}\n")
    return where
