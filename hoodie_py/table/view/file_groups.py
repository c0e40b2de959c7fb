"""Builds the file groups of a partition from the file names in its listing.

A file group is all base files and log files with one file id, over all instants. Other names are ignored: a partition
also holds metafiles, checksums and temporary files. Change-data files (``.cdc``) are named like log files but hold no
rows of a slice (Hudi ``AbstractTableFileSystemView.buildFileGroups``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from hoodie_py.files import FileInfo
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.reader.file_slice import BaseFile, LogFile

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All listed files with one file id, committed or not: base files oldest first, log files in read order.

    ``change_files``: change-data files. They are in no slice; they belong to the base file of their instant.
    """

    partition_path: str
    file_id: str
    base_files: tuple[BaseFile, ...]
    log_files: tuple[LogFile, ...]
    change_files: tuple[LogFile, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.partition_path, self.file_id


def group_files(partition_path: str, listing: Iterable[FileInfo]) -> list[FileGroup]:
    """Group a partition's listing by file id, sorted by file id.

    Raises:
        UnsupportedFeatureError: another system wrote a file and registered it with the table.
    """
    bases: dict[str, list[BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    changes: dict[str, list[LogFile]] = {}
    for info in listing:
        if info.is_dir:
            continue
        name = info.name
        if name.startswith("."):
            log = parse_log_file_name(name)
            if log is not None:
                known = changes if log.is_cdc else logs
                known.setdefault(log.file_id, []).append(LogFile(info.path, info.size, log))
            continue
        base = parse_base_file_name(name)
        if base is not None:
            bases.setdefault(base.file_id, []).append(BaseFile(info.path, info.size, base.instant, base.file_id))
    return [
        FileGroup(
            partition_path,
            file_id,
            _sort(bases.get(file_id, []), _get_base_order),
            _sort(logs.get(file_id, []), _get_log_order),
            _sort(changes.get(file_id, []), _get_log_order),
        )
        for file_id in sorted(bases.keys() | logs.keys())
    ]


def _sort(files: list[T], key: Callable[[T], Any]) -> tuple[T, ...]:
    if len(files) > 1:
        files.sort(key=key)
    return tuple(files)


def _get_base_order(file: BaseFile) -> tuple[str, str]:
    return file.instant, file.path


def _get_log_order(file: LogFile) -> Any:
    return file.name.sort_key
