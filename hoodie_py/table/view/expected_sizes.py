"""Find the sizes that files should have by the commits' write statistics, for reads with ``integrity="strict"``.

Facts (Hudi ``HoodieWriteStat``): the statistic of a base file has its size in bytes. The statistic of a log file has
the bytes of one append. From table version 8 on, a log file is one append and never grows. Below version 8 the append
ends at ``logOffset`` plus the size. Later appends follow it, also those of failed commits and rollback blocks, so only
a shorter file contradicts the statistics. Files of archived commits, and log files that only rollbacks wrote, have no
statistic and no expected size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.timeline.loader import TableTimeline

_FIRST_VERSION_OF_WRITE_ONCE_LOGS = 8


def find_expected_sizes(timeline: TableTimeline, slices: Sequence[FileSlice]) -> dict[str, int]:
    """Return the sizes in bytes that the slices' files should have, by path.

    Below table version 8, a log file may be longer than its statistics: then its listed size is expected.

    Raises:
        CorruptFileError: a commit's metadata is damaged.
        StorageError: the metadata cannot be read.
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
