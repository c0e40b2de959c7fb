"""Find the data files that an unfinished write left, this package's or Java's.

File names carry the write's instant. Only log files up to table version 6 carry the slice's base instant instead, so
their blocks are read. Change-data files count, too.
"""

from __future__ import annotations

from hoodie_py.errors import FileMissingError, UnsupportedFeatureError
from hoodie_py.files import FileInfo, TableFiles
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.data_file import is_named_after
from hoodie_py.writer.handles.markers import Markers


def find_written_files(snapshot: Snapshot, instant: str, *, clustering: bool = False) -> dict[str, tuple[str, ...]]:
    """Return names of the data files that an instant wrote, by partition path.

    For a clustering, includes log files named after it (Java writes concurrent bucket changes there).

    Raises:
        UnsupportedFeatureError: a log file also holds blocks of other writes.
        StorageError: the store refused.
    """
    by_block = not snapshot.config.has_logs_named_by_commit
    announced = (
        {marker.path for marker in Markers(snapshot.files, instant).list_announced()} if by_block else set[str]()
    )
    found: dict[str, tuple[str, ...]] = {}
    for listing in snapshot.view.list_data_folders():
        names = [
            info.name
            for info in listing.files
            if _is_written_by(snapshot.files, info, instant, by_block and not clustering, announced)
        ]
        if names:
            found[listing.partition.path] = tuple(sorted(names))
    return found


def _is_written_by(files: TableFiles, info: FileInfo, instant: str, by_block: bool, announced: set[str]) -> bool:
    if not by_block or not info.name.startswith("."):
        return is_named_after(info.name, instant)
    is_log = parse_log_file_name(info.name) is not None
    return is_log and _has_blocks_of(files, info.path, instant, torn_is_own=info.path in announced)


def _has_blocks_of(files: TableFiles, path: str, instant: str, *, torn_is_own: bool) -> bool:
    """Whether an instant wrote a log file. If it contains no whole block, the instant wrote it if it announced it."""
    try:
        data = read_bounded(files, path, "log_bytes")
    except FileMissingError:  # its writer has removed it since the listing
        return False
    times = {block.instant_time if isinstance(block, LogBlock) else None for block in iterate_blocks(data)}
    if instant not in times:
        return torn_is_own and not times - {None}
    if len(times - {None}) > 1:
        raise UnsupportedFeatureError(
            "Rolling back a write whose log file holds other writes' blocks.",
            hint="Let Java Hudi roll it back.",
            path=path,
            instant=instant,
        )
    return True
