"""Larger tables from small ones that Java Hudi wrote, without Java.

``groups`` copies every file group under new file ids and with other keys; ``bases`` writes the rows of every base file
so many times, again with other keys, behind the original rows. Both leave log blocks at their places and record
positions true, so merging does the same work per file group, respectively meets the same log side.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from tests.benchmarks.base_copies import write_copy
from tests.benchmarks.commit_copies import copy_stats
from tests.benchmarks.rekey import KeyShape

_META = ".hoodie"
_NUMBERED = 4  # hexadecimal digits at the start of a file id that copies count in


@dataclass(frozen=True)
class DataFile:
    """A base or log file of the table to be copied."""

    path: Path
    file_id: str
    is_log: bool


def grow(source: Path, target: Path, shape: KeyShape, groups: int = 1, bases: int = 1) -> None:
    """Write a table with ``groups`` times the file groups and ``bases`` times the rows in base files.

    Raises:
        ValueError: keys or blocks that cannot be copied soundly, or file ids that would meet.
    """
    config = TableConfig.from_bytes((source / _META / "hoodie.properties").read_bytes())
    (key_column,) = config.record_key_fields
    files = list(data_files(source))
    _check_ids({file.file_id for file in files}, groups)
    sizes: dict[str, tuple[int, int]] = {}
    for file in files:
        for group in range(groups):
            relative = file.path.relative_to(source)
            fresh = relative.with_name(relative.name.replace(file.file_id, copied_id(file.file_id, group)))
            into = target / fresh
            into.parent.mkdir(parents=True, exist_ok=True)
            if file.is_log:
                into.write_bytes(_copied_log(file, shape, group, bases))
            elif group == 0 and bases == 1:
                shutil.copyfile(file.path, into)
            else:
                rows = write_copy(file.path, into, shape, key_column, group * bases, bases)
                sizes[fresh.as_posix()] = (into.stat().st_size, rows)
    _copy_the_rest(source, target, groups, sizes)


def data_files(table: Path) -> Iterator[DataFile]:
    """Yield the base and log files of a table."""
    for path in sorted(table.rglob("*")):
        if _META in path.relative_to(table).parts or not path.is_file():
            continue
        base, log = parse_base_file_name(path.name), parse_log_file_name(path.name)
        if base is not None:
            yield DataFile(path, base.file_id, is_log=False)
        elif log is not None:
            yield DataFile(path, log.file_id, is_log=True)


def copied_id(file_id: str, group: int) -> str:
    """Return the file id of a copy, of the same length; copy 0 is the original."""
    number = (int(file_id[:_NUMBERED], 16) + group) % 16**_NUMBERED
    return f"{number:0{_NUMBERED}x}{file_id[_NUMBERED:]}"


def _check_ids(file_ids: set[str], groups: int) -> None:
    owners: dict[str, set[str]] = defaultdict(set)
    for file_id in file_ids:
        for group in range(groups):
            owners[copied_id(file_id, group)].add(file_id)
    meeting = [ids for ids in owners.values() if len(ids) > 1]
    if meeting:
        raise ValueError(f"copies of {meeting[0]} would have the same file id")


def _copied_log(file: DataFile, shape: KeyShape, group: int, bases: int) -> bytes:
    data = file.path.read_bytes()
    if group == 0:
        return data
    renamed = data.replace(file.file_id.encode(), copied_id(file.file_id, group).encode())  # in _hoodie_file_name
    return shape.rekey_log(renamed, group * bases)


def _copy_the_rest(source: Path, target: Path, groups: int, sizes: dict[str, tuple[int, int]]) -> None:
    """Copy partition markers, properties and the timeline, with the new files in the commits."""
    known = {file.path for file in data_files(source)}
    for path in source.rglob("*"):
        into = target / path.relative_to(source)
        if path.is_dir():
            into.mkdir(parents=True, exist_ok=True)
        elif path not in known:
            data = path.read_bytes()
            if path.name.endswith("commit") and "_" in path.name:
                data = copy_stats(data, lambda old: [copied_id(old, group) for group in range(groups)], sizes)
            into.write_bytes(data)
