"""Small tables made of names and properties alone, for tests of listing and slicing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import compute_table_checksum
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from hoodie_py.table.view.file_system_view import FileSystemView

V6 = {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}
V9 = {"hoodie.table.version": "9", "hoodie.timeline.layout.version": "2"}
ALWAYS_SINCE_8 = {"hoodie.timeline.path": "timeline", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}


def properties_text(name: str = "t", **extra: str) -> bytes:
    values = {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.checksum": str(compute_table_checksum(name)),
        "hoodie.table.recordkey.fields": "id",
        "hoodie.archivelog.folder": "archived",
        **V9,
        **extra,
    }
    if values["hoodie.table.version"] != "6":
        values = ALWAYS_SINCE_8 | values
    return "".join(f"{key}={value}\n" for key, value in values.items()).encode("iso-8859-1")


def make_table(root: Path, files: Mapping[str, bytes | dict[str, Any] | None] | None = None, **extra: str) -> Path:
    """Write properties and files (JSON for dicts, folders for None) below ``root``."""
    for path, content in {".hoodie/hoodie.properties": properties_text(**extra), **(files or {})}.items():
        target = root / path
        if content is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(json.dumps(content).encode() if isinstance(content, dict) else content)
    return root


def open_view(root: Path) -> FileSystemView:
    files = TableFiles.open(str(root))
    config = load_config(files)
    return FileSystemView(files, config, TableTimeline.load(files, config))
