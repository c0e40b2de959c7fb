"""CommitRange: the completed commits between two times; commits can be hidden from it.

The rules (Hudi ``IncrementalQueryAnalyzer``, ``MergeOnReadIncrementalRelationV1`` and ``V2``; F4.13, F4.14):

* The start is exclusive, the end inclusive. Times are digits and compare as text, so ``000`` comes before all.
* From table version 8 on ranges are of completion times, up to version 6 of request times.
* With request times an unfinished commit may be older than completed ones. When it completes, its rows belong to a
  range that was read already. So the query fails, or ends before that commit
  (``hoodie.read.timeline.holes.resolution.policy``).
* From version 8 on, archived commits count, too. The archive is read only if the range may reach it. Up to version 6 a
  range begins with the active timeline, and its rows may be of older commits.

Readers of commits as they land hide log compactions (``hide_commits``), which give their own commit time to the rows
that they rewrite, while compactions and clusterings keep it. A range with a log compaction, but without all commits
that it joined, would return rows of earlier commits again. So a range ends there: base files made later from their rows
do not show which commit wrote these.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import FIRST_VERSION_WITH_COMPLETION_TIMES, TableConfig
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import COMMIT, COMPLETED, COMPLETED_ACTION, INFLIGHT, REPLACE_COMMIT, Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.options.read import HOLES_POLICY, RANGE_END, RANGE_START, RANGE_TABLE_VERSION, SKIP_COMPACTION
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.timeline.time_travel import AsOf, parse_instant

EARLIEST, LATEST = "earliest", "latest"  # where followers and streams begin; ranges accept only the first

_LONGEST_COMMIT = datetime.timedelta(days=1)  # as in Java: no commit takes longer
_LONGEST_TIME = 32


@dataclass(frozen=True, slots=True)
class RangeCommit:
    """A completed write of a range, and whether it has left the active timeline."""

    instant: Instant
    is_archived: bool = False

    @property
    def request_time(self) -> str:
        """The time in the commit's rows."""
        return self.instant.request_time


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits that completed after ``start`` and not after ``end``.

    Attributes:
        start: exclusive; empty for the beginning.
        end: inclusive; None for now.
        commits: in the order of their request times.
        by_request_time: whether both ends are request times; else they are completion times.
        starts_archived, ends_archived: whether an end lies before the active timeline.
        hole: request time of an unfinished commit; base files of later commits do not count.
    """

    start: str
    end: str | None
    commits: tuple[RangeCommit, ...]
    by_request_time: bool
    starts_archived: bool = False
    ends_archived: bool = False
    hole: str | None = None

    @property
    def position(self) -> str:
        """The start of the range that continues this one; a hole and later commits stay outside."""
        times = (get_time(each.instant, self.by_request_time) for each in self.commits)
        return max((time for time in times if self.hole is None or time < self.hole), default=self.start)

    @property
    def has_archived(self) -> bool:
        """Whether a commit of the range has left the active timeline."""
        return any(each.is_archived for each in self.commits)

    def __str__(self) -> str:
        return f"({self.start or EARLIEST}, {self.end or 'now'}]"


def get_time(instant: Instant, by_request_time: bool) -> str:
    """Return the time of a completed instant that ranges compare."""
    return instant.request_time if by_request_time else instant.completion_time or instant.request_time


def resolve_range(
    timeline: TableTimeline,
    start: AsOf | None = EARLIEST,
    end: AsOf | None = None,
    options: Mapping[str, str] | None = None,
    zone: datetime.tzinfo = datetime.UTC,
) -> CommitRange:
    """Return the commits between two times; ``zone`` is the zone of naive times.

    ``start``: "earliest" or None for the beginning. No commit needs to have these times. A range may be empty.

    Raises:
        InvalidQueryError: an invalid time, an end before the start, or a hole up to table version 6.
        UnsupportedFeatureError: a comparison for which the table has no times.
    """
    given = options or {}
    by_request_time = compares_request_times(timeline.config, given)
    first, last = _parse_start(start, zone), None if end is None else parse_time(end, zone)
    if last is not None and last < first:
        raise InvalidQueryError(
            f"The range ends at {last}, before its start {first}.", hint=describe_available(timeline, by_request_time)
        )
    if by_request_time:
        return _find_by_request_time(timeline, first, last, given)
    found = _find_by_completion_time(timeline, first, last)
    if not SKIP_COMPACTION.read(given) or not timeline.config.is_merge_on_read:
        return found
    # On a merge-on-read table, an instant with the action of a commit is a compaction.
    return replace(found, commits=tuple(each for each in found.commits if each.instant.action != COMMIT))


def compares_request_times(config: TableConfig, options: Mapping[str, str]) -> bool:
    """Say whether ranges of a table compare request times: up to version 6, or as the options say.

    Raises:
        UnsupportedFeatureError: the options ask for completion times that the table does not store.
    """
    version = RANGE_TABLE_VERSION.read_given(options)
    if version is None:
        version = config.version
    if version >= FIRST_VERSION_WITH_COMPLETION_TIMES > config.version:
        raise UnsupportedFeatureError(
            f"Ranges of completion times on table version {config.version}, which does not store them.",
            hint=f"Leave out {RANGE_TABLE_VERSION}, or upgrade the table.",
        )
    return version < FIRST_VERSION_WITH_COMPLETION_TIMES


def is_asked_as_java(options: Mapping[str, str]) -> bool:
    """Say whether Java Hudi's options give the range; then the answer is Java's, too."""
    return RANGE_START.find_text(options) is not None or RANGE_END.find_text(options) is not None


def parse_time(value: AsOf, zone: datetime.tzinfo) -> str:
    """Return an end of a range in digits. Text of digits stays as it is, whatever its length.

    Raises:
        InvalidQueryError: the value is no time.
    """
    text = str(value)
    if isinstance(value, (str, int)) and text.isascii() and text.isdecimal() and len(text) <= _LONGEST_TIME:
        return text
    return parse_instant(value, zone)


def _parse_start(value: AsOf | None, zone: datetime.tzinfo) -> str:
    if value is None or (isinstance(value, str) and value.strip().lower() == EARLIEST):
        return ""
    time = parse_time(value, zone)
    if time == value or not time.endswith("999") or _names_milliseconds(value):
        return time
    return f"{time[:-3]}000"  # a second without milliseconds means its end elsewhere; commits within it come after it


def _names_milliseconds(value: AsOf) -> bool:
    return bool(value.microsecond) if isinstance(value, datetime.datetime) else "." in str(value)


def describe_available(timeline: TableTimeline, by_request_time: bool) -> str:
    """Return the hint for a range that is not available: the times of the first and last commit."""
    times = [get_time(each, by_request_time) for each in timeline.list_completed_writes()]
    if not times:
        return "The table has no commits."
    kind = "request" if by_request_time else "completion"
    return f"The timeline has commits with {kind} times from {min(times)} to {max(times)}."


def read_range_metadata(timeline: TableTimeline, commit_range: CommitRange) -> list[CommitMetadata]:
    """Return the metadata of a range's commits, in their order; the active ones are read in parallel.

    Raises:
        InvalidTableError: a commit's metadata is in neither timeline.
        CorruptFileError: a timeline file is damaged.
    """
    active = [each.instant for each in commit_range.commits if not each.is_archived]
    known = dict(zip(active, timeline.read_all_metadata(active), strict=True))
    found: list[CommitMetadata] = []
    for each in commit_range.commits:
        metadata = known.get(each.instant)
        if metadata is None:
            metadata = timeline.read_archive().read_metadata(each.request_time)
        if metadata is None:
            raise InvalidTableError("The archive does not have a commit's metadata.", instant=each.request_time)
        found.append(metadata)
    return found


def _find_by_completion_time(timeline: TableTimeline, start: str, end: str | None) -> CommitRange:
    active = [RangeCommit(each) for each in timeline.list_completed_writes()]
    known = {each.request_time for each in active}
    archived = [each for each in _list_archived(timeline, start) if each.request_time not in known]
    inside = partial(_is_inside, start, end, False)
    commits = sorted(filter(inside, (*archived, *active)), key=lambda each: each.request_time)
    return CommitRange(start, end, tuple(commits), False)


def _is_inside(start: str, end: str | None, by_request_time: bool, commit: RangeCommit) -> bool:
    time = get_time(commit.instant, by_request_time)
    return time > start and (end is None or time <= end)


def _list_archived(timeline: TableTimeline, start: str) -> Iterable[RangeCommit]:
    """Return the archived commits that may have completed after a time.

    An archived commit was requested before the active timeline begins, and completed within a day of that. Later
    archived commits were archived after the timeline was listed: they are in its commits, or are newer than it.
    """
    first = timeline.first_active_time
    if first is None or not _may_reach(first, start):
        return ()
    return (
        RangeCommit(Instant(each.request_time, each.completion_time, each.action, COMPLETED), is_archived=True)
        for each in timeline.read_archive().instants
        if each.request_time < first and each.request_time in timeline.read_archive().completion_times
    )


def _may_reach(first_active: str, start: str) -> bool:
    try:
        began = datetime.datetime.strptime(first_active[:14], "%Y%m%d%H%M%S")  # noqa: DTZ007 - only the distance counts
    except ValueError:  # not a time: other tools write plain numbers
        return True
    return start <= f"{began + _LONGEST_COMMIT:%Y%m%d%H%M%S}999"


def _find_by_request_time(
    timeline: TableTimeline, start: str, end: str | None, options: Mapping[str, str]
) -> CommitRange:
    writes = timeline.list_completed_writes()
    hole = _find_hole(timeline, start, end, options)
    first = writes[0].request_time if writes else None
    starts_archived = first is not None and start < first
    ends_archived = first is not None and end is not None and end < first
    commits = filter(partial(_is_inside, start, end, True), map(RangeCommit, writes))
    return CommitRange(start, end, tuple(commits), True, starts_archived, ends_archived, hole)


def _find_hole(timeline: TableTimeline, start: str, end: str | None, options: Mapping[str, str]) -> str | None:
    """Return the unfinished commit that the options allow before completed ones (``handleHollowCommitIfNeeded``).

    ``BLOCK`` leaves out later base files, but not later log files, as in Java 1.2.0.

    Raises:
        InvalidQueryError: a completed write is newer than an unfinished one.
        UnsupportedFeatureError: the options ask for completion times, which the table does not store.
    """
    writes = timeline.list_completed_writes()
    hole = find_first_pending(timeline)
    if hole is None or not writes or writes[-1].request_time <= hole:
        return None
    policy = HOLES_POLICY.read(options)
    if policy == "BLOCK":
        return hole
    if policy == "USE_TRANSITION_TIME":
        if writes[0].request_time > start and end is None:
            return None  # all commits, in whatever order they completed
        raise UnsupportedFeatureError(
            f"{HOLES_POLICY}={policy} with a start or an end: the table stores no completion times.",
            hint="Give BLOCK, or upgrade the table.",
        )
    raise InvalidQueryError(
        f"The commit {hole} has not finished, but later ones have: its rows would be missing in the range.",
        hint=f"Wait for it, roll it back, or set {HOLES_POLICY}=BLOCK.",
        instant=hole,
    )


def find_first_pending(timeline: TableTimeline) -> str | None:
    """Return the request time of the first unfinished write that adds rows; None without one.

    Compactions and clusterings only move rows. Up to version 6 only its plan distinguishes a clustering from an
    overwrite.

    Raises:
        InvalidTableError: a plan is gone.
        CorruptFileError: a plan is damaged.
    """
    for each in timeline.select_pending():
        if not each.is_write or each.action in COMPLETED_ACTION:
            continue
        if each.action == REPLACE_COMMIT and timeline.read_replace_plan(each).is_clustering:
            continue
        return each.request_time
    return None


def find_log_compactions(timeline: TableTimeline, commit_range: CommitRange) -> frozenset[Instant]:
    """Return the log compactions of a range; a copy-on-write table has none.

    Raises:
        CorruptFileError: a commit's metadata is damaged.
    """
    if not timeline.config.is_merge_on_read:
        return frozenset()
    found = zip(commit_range.commits, read_range_metadata(timeline, commit_range), strict=True)
    return frozenset(each.instant for each, metadata in found if metadata.is_log_compaction)


def hide_later(
    timeline: Timeline, position: str, by_request_time: bool, without: AbstractSet[Instant] = frozenset()
) -> Timeline:
    """Return a timeline as it was at a position: later writes, and those in ``without``, are unfinished."""

    def hide(instant: Instant) -> Instant:
        later = instant.is_completed and instant.is_write and get_time(instant, by_request_time) > position
        if later or instant in without:
            return replace(instant, state=INFLIGHT, completion_time=None)
        return instant

    return Timeline(map(hide, timeline), timeline.layout, timeline.undone)
