"""What the commits' write statistics say about files, for readers that verify them.

Facts (Hudi ``HoodieWriteStat``): a base file's statistic has its size in bytes. A log file's has the bytes of one
append: from version 8 on a file is one append and never grows; below that ``logOffset`` plus the size is where the
append ended, and later appends - also of commits that failed, and rollback blocks - lie behind it, so only a shorter
file contradicts. Files of archived commits, and logs that only rollbacks wrote, have no statistic and so no
expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.timeline_loader import TableTimeline

_FIRST_VERSION_OF_WRITE_ONCE_LOGS = 8


def find_expected_sizes(timeline: TableTimeline, slices: Sequence[FileSlice]) -> dict[str, int]:
    """Sizes in bytes that the slices' files should have, by path.

    A log file below table version 8 that is at least as long as the statistics say is expected as it is listed.

    Raises:
        CorruptFileError: a commit's metadata is damaged.
        StorageError: it cannot be read.
    """
    written = _find_written_sizes(timeline, slices)
    logs_grow = timeline.config.version < _FIRST_VERSION_OF_WRITE_ONCE_LOGS
    sizes: dict[str, int] = {}
    for each in slices:
        if each.base_file is not None and each.base_file.path in written:
            sizes[each.base_file.path] = written[each.base_file.path]
        for log in each.log_files:
            if log.path in written:
                size = written[log.path]
                sizes[log.path] = max(size, log.size) if logs_grow else size
    return sizes


def _find_written_sizes(timeline: TableTimeline, slices: Iterable[FileSlice]) -> Mapping[str, int]:
    paths = {log.path for each in slices for log in each.log_files}
    paths.update(each.base_file.path for each in slices if each.base_file is not None)
    written: dict[str, int] = {}
    for path in paths:
        for stat in timeline.stats_by_path.get(path, ()):
            is_log = stat.log_version is not None or (stat.file_name or "").startswith(".")
            end = (stat.log_offset or 0) + stat.file_size_in_bytes if is_log else stat.file_size_in_bytes
            known = written.get(path)
            if end > 0 and (known is None or end >= known):
                written[path] = end
    return written
