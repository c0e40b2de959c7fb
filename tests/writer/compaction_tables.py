"""Copies of reference tables to write to, and what must hold of them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.table.snapshot import open_snapshot
from tests.corpus import unpack

QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
"""No waiting for other machines' clocks."""


def writable(name: str, into: Path) -> Path:
    """Unpack a reference table so that it can be written to."""
    base = unpack(name, into)
    for path in base.rglob("*"):
        if path.is_file():
            path.chmod(0o644)
    return base


def copied(base: Path, into: Path) -> Path:
    """Copy a table."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(base, into)
    return into


def opened(files: TableFiles) -> HoodieTable:
    """Open a table by way of given files."""
    return HoodieTable(open_snapshot(files))


def rows(table: HoodieTable, query_type: str = "snapshot") -> Counter[str]:
    """All rows as text, the file's name aside."""
    found = table.scan(query_type=query_type).to_arrow()
    if "_hoodie_file_name" in found.schema.names:
        found = found.drop_columns(["_hoodie_file_name"])
    return Counter(map(repr, found.to_pylist()))


def completed(table: HoodieTable, action: str) -> list[str]:
    """Request times of completed instants of an action."""
    return [each.request_time for each in table.timeline if each.is_completed and each.action == action]


def orphans(base: Path) -> list[str]:
    """Base files and change-data files of completed instants that their commit does not name."""
    table = HoodieTable.open(base)
    named: dict[str, set[str]] = {}
    for instant in table._snapshot.timeline.list_completed_writes():
        stats = list(table._snapshot.timeline.read_metadata(instant).iterate_stats())
        named[instant.request_time] = {path for stat in stats for path in (stat.path or "", *stat.cdc_stats)}
    found = []
    for path in (*base.rglob("*.parquet"), *base.rglob(".*.cdc")):
        relative = path.relative_to(base).as_posix()
        name = parse_log_file_name(path.name) if path.suffix == ".cdc" else parse_base_file_name(path.name)
        if relative.startswith(".hoodie/") or name is None or name.instant not in named:
            continue
        if relative not in named[name.instant]:
            found.append(relative)
    return found


def missing(base: Path) -> list[str]:
    """Files that completed commits of the active timeline name and that are not there."""
    table = HoodieTable.open(base)
    paths = table._snapshot.timeline.stats_by_path
    return [path for path in paths if not (base / path).exists()]


def leftovers(base: Path) -> list[str]:
    """Files that unfinished work leaves: markers, scratch files, heartbeats."""
    found: list[Any] = [*base.glob(".hoodie/.temp/*/**/*"), *base.glob(".hoodie/metadata/.hoodie/.temp/*/**/*")]
    found += [*base.rglob("*.tmp"), *base.glob(".hoodie/.heartbeat/*")]
    return sorted(path.relative_to(base).as_posix() for path in found if path.is_file())
