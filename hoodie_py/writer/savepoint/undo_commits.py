"""Undo the instants of a restore: find the data files that they wrote, and remove them with the instants (Hudi
``MergeOnReadRestoreActionExecutor``, ``ListingBasedRollbackStrategy``).

File names carry the instant that wrote the file. Only log files up to table version 6 carry the slice's base instant,
so their blocks are read. Java undoes these blocks with a rollback command; here the files are deleted, as one commit
makes one log file. A log file with blocks of other commits is refused before anything is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from hoodie_py.errors import FileMissingError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.instants import STATES, parse_instant_name
from hoodie_py.formats.timeline.plans import RolledBackInstant
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.lock.heartbeat import HEARTBEAT_FOLDER
from hoodie_py.writer.rollback.finish import delete_files
from hoodie_py.writer.timeline.schema_commits import remove_schema_history
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.hash_ranges import forget_undone

FilesByInstant = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Names of data files, by the instant that wrote them and by partition path."""


def find_files_to_undo(snapshot: Snapshot, instants: Collection[str]) -> FilesByInstant:
    """Return the data files that instants wrote, from one listing of the table.

    Raises:
        UnsupportedFeatureError: a log file also holds blocks of other commits.
        StorageError: the store refused.
    """
    wanted = frozenset(instants)
    found: dict[str, dict[str, list[str]]] = {each: {} for each in instants}
    logs = _LogsOfOldTables(snapshot, wanted)
    for listing in snapshot.view.list_data_folders():
        for info in listing.files:
            log = parse_log_file_name(info.name) if info.name.startswith(".") else None
            name = log or (None if info.name.startswith(".") else parse_base_file_name(info.name))
            if name is None:
                continue
            by_name = log is None or log.is_cdc or snapshot.config.has_logs_named_by_commit
            instant = name.instant if by_name else logs.find_instant(info.path)
            if instant in wanted:
                found[instant].setdefault(listing.partition.path, []).append(info.name)
    return {
        instant: {partition: tuple(sorted(names)) for partition, names in sorted(some.items())}
        for instant, some in found.items()
    }


def undo_instant(
    session: WriteSession,
    snapshot: Snapshot,
    undone: RolledBackInstant,
    files: Mapping[str, tuple[str, ...]],
    check: Callable[[], object],
) -> None:
    """Remove an instant and its data files. ``check`` raises if the run has lost the lock or its heartbeat.

    Raises:
        ConflictError: raised by ``check``.
        StorageError: the store refused; the next run goes on.
    """
    timeline = session.open_timeline(snapshot)
    parsed = (parse_instant_name(name, snapshot.config.timeline_layout) for name in snapshot.timeline.names)
    own = [each for each in parsed if each is not None and each.request_time == undone.time and each.is_write]
    own.sort(key=lambda each: STATES.index(each.state), reverse=True)
    check()
    # Hash ranges and completed file go before the data files, so that readers do not miss files. The pending states go
    # last: a killed restore leaves a pending instant, which the next run undoes.
    forget_undone(snapshot, own, files)
    for each in own:
        if each.is_completed:
            timeline.remove(each)
    delete_files(session.files, files)
    remove_schema_history(session.files, undone.time)
    Markers(session.files, undone.time).remove_all()
    session.files.delete_with_checksum(f"{HEARTBEAT_FOLDER}/{undone.time}")
    for each in own:
        if not each.is_completed:
            timeline.remove(each)


class _LogsOfOldTables:
    """Finds the instant that wrote a log file, up to table version 6."""

    def __init__(self, snapshot: Snapshot, wanted: frozenset[str]) -> None:
        self._snapshot = snapshot
        self._wanted = wanted
        self._announced: dict[str, str] | None = None

    def find_instant(self, path: str) -> str:
        """Return the newest of the wanted instants with blocks in the file; "" if there is none.

        A file without a whole block belongs to the instant that announced it.
        """
        times = self._read_times(self._snapshot.files, path)
        own = times & self._wanted
        if not times:
            return self._find_announced().get(path, "")
        if own and times - own:
            raise UnsupportedFeatureError(
                "A restore that would undo a part of a log file: others' blocks in it stay.",
                hint="Let Java Hudi restore the table.",
                path=path,
                instant=max(own),
            )
        return max(own, default="")

    def _find_announced(self) -> dict[str, str]:
        if self._announced is None:
            files = self._snapshot.files
            self._announced = {
                marker.path: each for each in self._wanted for marker in Markers(files, each).list_announced()
            }
        return self._announced

    def _read_times(self, files: TableFiles, path: str) -> set[str]:
        try:
            data = read_bounded(files, path, "log_bytes")
        except FileMissingError:
            return set()
        blocks = (block for block in iterate_blocks(data) if isinstance(block, LogBlock))
        return {block.instant_time or "" for block in blocks}
