"""Payload classes that Java Hudi ships, as mergers."""

from __future__ import annotations

from hoodie_py.reader.merger import RecordMerger


def builtin_payload_merger(payload_class: str) -> RecordMerger | None:
    """Return the merger that stands for a payload class; None for one that is not built in."""
    return None
