"""Limits of a micro-batch: how many commits, files and bytes it may have.

A batch has whole commits, and at least one. Commits of the same time stay together, because a position cannot lie
between them. A commit counts with the files and bytes that it wrote. Table services count nothing, because a stream
reads no rows of them. A batch ends with a log compaction at the latest (``history`` says why).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.spark.load_options import MAX_BYTES, MAX_COMMITS, MAX_FILES
from hoodie_py.table.incremental.commit_range import CommitRange, RangeCommit, get_time, read_range_metadata
from hoodie_py.table.timeline.loader import TableTimeline

_READ_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """The maxima of a batch; None is no limit."""

    commits: int | None = None
    files: int | None = None
    bytes: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Limits:
        """Parse the options of a stream.

        Raises:
            InvalidQueryError: a limit is no number.
        """
        return cls(MAX_COMMITS.read_given(options), MAX_FILES.read_given(options), MAX_BYTES.read_given(options))

    def __bool__(self) -> bool:
        return (self.commits, self.files, self.bytes) != (None, None, None)

    def admits(self, load: Load) -> bool:
        """Say whether a load is within the limits."""
        pairs = ((self.commits, load.commits), (self.files, load.files), (self.bytes, load.bytes))
        return all(most is None or value <= most for most, value in pairs)


@dataclass(frozen=True, slots=True)
class Load:
    """What commits wrote. ``is_last``: a batch must end with them."""

    commits: int = 0
    files: int = 0
    bytes: int = 0
    is_last: bool = False

    @classmethod
    def of(cls, metadata: CommitMetadata) -> Load:
        """Return what one commit wrote."""
        if metadata.moves_rows:
            return cls(is_last=metadata.is_log_compaction)
        stats = [stat for stat in metadata.iterate_stats() if stat.path is not None]
        return cls(
            1,
            len({stat.path for stat in stats}),
            sum(max(0, stat.total_write_bytes or stat.file_size_in_bytes) for stat in stats),
        )

    def __add__(self, other: Load) -> Load:
        return Load(
            self.commits + other.commits,
            self.files + other.files,
            self.bytes + other.bytes,
            self.is_last or other.is_last,
        )


def choose_end(timeline: TableTimeline, commit_range: CommitRange, limits: Limits, least: str = "") -> str:
    """Return the position of the end of a batch that begins at the range's start.

    Everything up to the position ``least`` is in the batch, whatever the limits; only a snapshot has one.

    Raises:
        CorruptFileError: a commit's metadata is damaged.
    """
    if not limits and (least or not timeline.config.is_merge_on_read):
        return commit_range.position
    end, total = commit_range.start, Load()
    for time, load in _iterate_loads(timeline, commit_range):
        if total.commits and time > least and not limits.admits(total + load):
            break
        end, total = time, total + load
        if load.is_last and not least:
            break
    return end


def _iterate_loads(timeline: TableTimeline, commit_range: CommitRange) -> Iterator[tuple[str, Load]]:
    """Yield each position of a range, in order, with the load written there. Metadata is read a few commits ahead."""

    def get_position(commit: RangeCommit) -> str:
        return get_time(commit.instant, commit_range.by_request_time)

    grouped = [
        (time, tuple(same)) for time, same in groupby(sorted(commit_range.commits, key=get_position), get_position)
    ]
    for start in range(0, len(grouped), _READ_AT_ONCE):
        some = grouped[start : start + _READ_AT_ONCE]
        found = iter(_read_metadata(timeline, commit_range, [each for _, same in some for each in same]))
        for time, same in some:
            yield time, sum((Load.of(next(found)) for _ in same), Load())


def _read_metadata(
    timeline: TableTimeline, commit_range: CommitRange, commits: Sequence[RangeCommit]
) -> list[CommitMetadata]:
    some = CommitRange(commit_range.start, commit_range.end, tuple(commits), commit_range.by_request_time)
    return read_range_metadata(timeline, some)
