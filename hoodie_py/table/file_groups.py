"""File groups of a partition, read off the names in its listing.

A file group is every base file and log file that carry one file id, over all instants. Names that are neither are
ignored, as a partition also holds metafiles, checksums and temporary files. Change-data files (``.cdc``) are listed
beside log files but belong to no slice that is read for rows (Hudi
``AbstractTableFileSystemView.buildFileGroups``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie_py.files import FileInfo
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.reader.file_slice import BaseFile, LogFile


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Everything listed under one file id: base files oldest first, log files in read order, nothing judged yet."""

    partition_path: str
    file_id: str
    base_files: tuple[BaseFile, ...]
    log_files: tuple[LogFile, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.partition_path, self.file_id


def group_files(partition_path: str, listing: Iterable[FileInfo]) -> list[FileGroup]:
    """Group a partition's listing by file id, sorted by it.

    Args:
        partition_path: of the partition, relative to the table.
        listing: what lies in the partition's folder.

    Raises:
        UnsupportedFeatureError: a file that another system wrote and registered with the table.
    """
    bases: dict[str, list[BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    for info in listing:
        if info.is_dir:
            continue
        name = info.name
        if name.startswith("."):
            log = parse_log_file_name(name)
            if log is not None and not log.is_cdc:
                logs.setdefault(log.file_id, []).append(LogFile(info.path, info.size, log))
            continue
        base = parse_base_file_name(name)
        if base is not None:
            bases.setdefault(base.file_id, []).append(BaseFile(info.path, info.size, base.instant, base.file_id))
    return [
        FileGroup(
            partition_path,
            file_id,
            tuple(sorted(bases.get(file_id, ()), key=lambda file: (file.instant, file.path))),
            tuple(sorted(logs.get(file_id, ()), key=lambda file: file.name.sort_key)),
        )
        for file_id in sorted(bases.keys() | logs.keys())
    ]
