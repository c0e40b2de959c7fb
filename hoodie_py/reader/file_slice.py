"""FileSlice: a base file and the log files on top of it in read order; and the rules which log blocks count.

A reader opens one file slice. The table layer decides which files belong to it. All classes here are plain values,
small and picklable, as scan tasks carry them to other processes. Log files are ordered by the time in the name, the
version as a number, the write token and the suffix (Hudi ``HoodieLogFile.LogFileComparator``).

An ``InstantRange`` is the commits whose base rows an incremental read takes (Hudi ``InstantRange``). Rows of other
commits are dropped before the merge, so a log record meets no row of an earlier commit (M3.16, M7.20).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.arrow.arrays import call, from_texts, index_in, make_text
from hoodie_py.errors import MergeError

if TYPE_CHECKING:
    from hoodie_py.formats.names import LogFileName


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Parquet file outside the table that holds the data columns of a base file with meta columns only.

    ``folder``: URI of the bootstrapped folder. ``path``: relative to it. ``size``: the file's size in bytes when it was
    bootstrapped; None if not known. ``indexed``: the place as the bootstrap index writes it, which plans repeat.
    """

    folder: str
    path: str
    size: int | None
    indexed: str = field(default="", compare=False)

    @property
    def uri(self) -> str:
        """The URI of the file."""
        return f"{self.folder.rstrip('/')}/{self.path}"


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One columnar file: path relative to the table, size in bytes, the instant that wrote it, its file group.

    Base files of a metadata-only bootstrap have a ``source``.

    Examples:
        >>> base = trips.file_slices(filter="city = 'la'")[0].base_file
        >>> base.path.startswith("la/"), base.instant == trips.timeline.instants[0].request_time
        (True, True)
    """

    path: str
    size: int
    instant: str
    file_id: str
    source: SourceFile | None = None

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]

    @property
    def whole_size(self) -> int:
        """The size in bytes, including the source's."""
        return self.size + (0 if self.source is None else self.source.size or 0)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log file: its path relative to the table, its size in bytes, and what its name says.

    Examples:
        >>> log_file = trips.file_slices(filter="city = 'sf'")[0].log_files[0]
        >>> log_file.size > 0, log_file.path.startswith("sf/.")
        (True, True)
        >>> trips.inspect.log_blocks(log_file.path)["type"].to_pylist()
        ['AVRO_DATA']
    """

    path: str
    size: int
    name: LogFileName

    @property
    def sort_key(self) -> Any:
        """Order of reading within a slice."""
        return self.name.sort_key


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A file group at an instant: ``log_files`` are in read order and hold no change-data (``.cdc``) files.

    Examples:
        >>> for file_slice in trips.file_slices():
        ...     print(file_slice.partition_path, file_slice.base_file is not None, len(file_slice.log_files))
        la True 0
        sf True 1
    """

    partition_path: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...]

    def __repr__(self) -> str:
        place = f"{self.partition_path}/{self.file_id}" if self.partition_path else self.file_id
        base = "no base file" if self.base_file is None else "a base file"
        logs = f"{len(self.log_files)} log file{'' if len(self.log_files) == 1 else 's'}"
        return f"FileSlice({place!r}, {self.base_instant}, {base}, {logs})"


@dataclass(frozen=True, slots=True)
class BlockRules:
    """Which data and delete blocks of a slice's log files count, by the instant in the block's header.

    A block later than ``query_instant`` never counts. On tables below version 8 one log file may hold blocks of several
    commits, so with ``check_commits`` a block counts only if its commit completed: it is in ``completed``, or it is
    older than ``first_active`` (then it was archived), and it is not in ``inflight``. From version 8 on a log file
    belongs to one commit, and files of unfinished commits are not in the slice (Hudi ``BaseHoodieLogRecordReader``).
    Rollback blocks are not subject to these rules.

    ``only``: if given, no other instants count; log files of a metadata table may have blocks of commits that the table
    around it does not have. ``parquet``: Parquet blocks count only if they are of these commits. ``originals``: leave
    out the blocks of log compactions, so that each row is read from the commit that wrote it.
    """

    query_instant: str | None = None
    completed: frozenset[str] | None = None
    inflight: frozenset[str] = frozenset()
    first_active: str | None = None
    check_commits: bool = False
    originals: bool = False
    only: frozenset[str] | None = None
    parquet: InstantRange | None = None

    def accepts(self, instant_time: str) -> bool:
        """Whether a data or delete block of that instant counts."""
        if self.query_instant is not None and instant_time > self.query_instant:
            return False
        if self.only is not None and instant_time not in self.only:
            return False
        if not self.check_commits:
            return True
        if instant_time in self.inflight:
            return False
        if self.completed is None or instant_time in self.completed:
            return True
        return self.first_active is not None and instant_time < self.first_active


class PartialRowsError(MergeError):
    """Log records of a range lack columns that only versions from before the range have."""

    is_failure = False  # the whole slice is read instead


@dataclass(frozen=True, slots=True)
class InstantRange:
    """Request times of commits: from ``first`` to ``last`` except ``others``, or exactly the times in ``only``.

    ``is_open``: leave ``first`` out.
    """

    first: str
    last: str
    is_open: bool = False
    others: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None

    def contains(self, time: str) -> bool:
        """Say whether a commit time is in the range."""
        if self.only is not None:
            return time in self.only
        after = time > self.first if self.is_open else time >= self.first
        return after and time <= self.last and time not in self.others

    def make_mask(self, times: pa.Array) -> pa.Array:
        """Return a bool array: whether each commit time is in the range; null for a null time."""
        if self.only is not None:
            return _find_in(times, self.only)
        low = call("greater" if self.is_open else "greater_equal", times, make_text(self.first, times.type))
        inside = call("and_kleene", low, call("less_equal", times, make_text(self.last, times.type)))
        if not self.others:
            return inside
        return call("and_kleene", inside, call("invert", _find_in(times, self.others)))


def _find_in(times: pa.Array, values: tuple[str, ...]) -> pa.Array:
    return call("is_valid", index_in(times, from_texts(list(values), times.type)))
