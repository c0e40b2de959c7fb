"""TableFollower: the rows of commits as they land, with tokens to continue after a restart.

* A step is a range of commits: all new ones, or ``max_commits`` of them in order. It is read as an incremental query,
  so a row that several commits of a step wrote comes once, as the last of them left it.
* The token moves when the last rows of a step are handed out. Until then it is the token before the step. So rows and
  token that are stored together are neither lost nor doubled, whatever happens in between.
* On table version 6 a step ends before the first unfinished write: when it completes, its rows have an older time.
* If commits were archived, or their files cleaned, a step without ``max_commits`` reads the latest rows of these
  commits. With ``max_commits``, and for changes, that is an error.
* Before each step the table is loaded again. A step whose files were deleted meanwhile starts again, as long as none
  of its rows were handed out.
* Log compactions are hidden, and a step ends with one at the latest (``commit_range`` says why).
* A commit that appears behind the position is an error: it comes from writers without a common lock, or with clocks
  that differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Self

import pyarrow as pa

from hoodie_py.errors import FileMissingError, HoodieError, InvalidQueryError
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.options.read import FALLBACK_TO_FULL_SCAN, HOLES_POLICY
from hoodie_py.table.incremental.commit_range import (
    EARLIEST,
    LATEST,
    CommitRange,
    compares_request_times,
    describe_available,
    find_first_pending,
    find_log_compactions,
    get_time,
    hide_later,
    parse_time,
    resolve_range,
)
from hoodie_py.table.incremental.named_commits import RangeEnd, find_time
from hoodie_py.table.incremental.position import (
    Position,
    find_last_time,
    identify_table,
    is_position,
    locate_position,
    parse_position,
)
from hoodie_py.table.scan.scan import Scan
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.timeline.time_travel import AsOf, parse_zone

_AFTER_ALL = "9" * 32
_ATTEMPTS = 3  # tries of a step whose files were deleted before it began to read them

# Makes the scan of the commits after a time, up to another (None: now), with reader options.
MakeScan = Callable[[Snapshot, str, str | None, Mapping[str, str]], Scan]


@dataclass(frozen=True, slots=True)
class FollowedBatch:
    """Some rows of a step, and the token to store with them.

    Attributes:
        rows: the rows; the only batch of a step is empty if its commits wrote no wanted row.
        token: the ``start`` to continue with: after this batch if it is the last of its step, else before the step.
        is_last: whether the step ends with this batch, so that the token has moved.
        commits: the step's commits in order, as their rows have them in ``_hoodie_commit_time``.

    Examples:
        >>> batch = list(trips.follow(start=trips.timeline.instants[0].completion_time, poll=None))[-1]
        >>> batch.rows["id"].to_pylist(), batch.is_last, len(batch.commits)
        (['a'], True, 1)
    """

    rows: pa.RecordBatch
    token: str
    is_last: bool
    commits: tuple[str, ...]

    def __repr__(self) -> str:
        last = ", is_last" if self.is_last else ""
        return f"FollowedBatch({self.rows.num_rows} rows of {len(self.commits)} commits, {self.token}{last})"


@dataclass(frozen=True, slots=True)
class _Step:
    """A range of commits to read. ``position``: the place after it. ``seen``: the commits up to there."""

    scan: Scan
    commits: tuple[str, ...]
    position: Position
    seen: frozenset[str]


class TableFollower(Iterator[FollowedBatch]):
    """Iterates over rows of commits as they land; make one with ``HoodieTable.follow``.

    It is its own context manager. ``close`` may be called from any thread: it ends a wait at once and a read after the
    batch in hand.

    Examples:
        >>> from contextlib import closing
        >>> with closing(trips.follow(poll=None, columns=["id"])) as follower:
        ...     sum(batch.rows.num_rows for batch in follower)
        3
        >>> list(trips.follow(start=follower.token, poll=None))  # nothing is new
        []
    """

    def __init__(
        self,
        snapshot: Snapshot,
        make_scan: MakeScan,
        *,
        start: RangeEnd,
        poll: float | None,
        max_commits: int | None = None,
        changes: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._changes = changes
        self._make_scan = make_scan
        self._poll = _check_poll(poll)
        self._most = _check_most(max_commits)
        # The latest rows replace those of commits whose files are gone, unless each commit's own rows are wanted.
        whole = "true" if max_commits is None else "false"
        self._options = {HOLES_POLICY: "BLOCK", FALLBACK_TO_FULL_SCAN: whole, **(options or {})}
        self._closed = Event()
        self._seen: frozenset[str] | None = None
        self._position, self._after = self._find_start(start)
        if snapshot.timeline.list_completed_writes():
            make_scan(snapshot, self._after or EARLIEST, None, self._options)  # checks the arguments
        self._batches = self._generate()

    @property
    def token(self) -> str:
        """The token of the last whole step, or of the start before there is one."""
        return self._position.to_text()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> FollowedBatch:
        if self._closed.is_set():
            raise StopIteration
        return next(self._batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the iteration and release its resources."""
        self._closed.set()
        with suppress(ValueError):  # another thread runs it, and ends it
            self._batches.close()

    def __repr__(self) -> str:
        return f"TableFollower({identify_table(self._snapshot.config)!r}, at {self.token})"

    def _find_start(self, given: RangeEnd) -> tuple[Position, str]:
        """Return the position of a start, and the time after which commits are new.

        Raises:
            InvalidQueryError: the start is missing, or the table does not have it.
        """
        snapshot = self._snapshot
        timeline = snapshot.timeline
        by_request_time = compares_request_times(snapshot.config, self._options)
        start = self._find_commit(given)
        if isinstance(start, str) and is_position(start):
            position = parse_position(start, snapshot.config)
            return position, locate_position(position, open_snapshot(snapshot.files).timeline, by_request_time)
        word = start.strip().lower() if isinstance(start, str) else ""
        if word == EARLIEST:
            return Position(identify_table(snapshot.config), "", by_request_time), ""
        if word == LATEST:
            after = reached = _find_newest(timeline, by_request_time)
        else:
            after = parse_time(start, parse_zone(snapshot.timezone, snapshot.config.timezone))
            reached = _find_reached(timeline, after, by_request_time)
        return Position(identify_table(snapshot.config), reached, by_request_time), after

    def _find_commit(self, start: RangeEnd) -> AsOf:
        """Return the time of a commit, which may be newer than the follower's loaded table."""
        timeline = self._snapshot.timeline
        newest = timeline.last
        if isinstance(start, str) and start.isdecimal() and newest is not None and start > newest.request_time:
            timeline = open_snapshot(self._snapshot.files).timeline
        found = find_time(timeline, start, self._options)
        return EARLIEST if found is None else found

    def _generate(self) -> Generator[FollowedBatch, None, None]:
        while True:
            any_new = yield from self._take_step()
            if self._closed.is_set() or (not any_new and self._poll is None):
                return
            if not any_new and self._closed.wait(self._poll):
                return

    def _take_step(self) -> Generator[FollowedBatch, None, bool]:
        """Yield the next step, and return whether there was one."""
        for attempt in range(1, _ATTEMPTS + 1):
            begun = False
            try:
                step = self._find_step()
                if step is None:
                    return False
                for batch in self._read_step(step):
                    begun = True
                    yield batch
            except HoodieError as error:
                gone = isinstance(error, FileMissingError) or isinstance(error.__cause__, FileMissingError)
                if begun or not gone or attempt == _ATTEMPTS:
                    raise
            else:
                return True
        raise AssertionError("the last attempt returns or raises")

    def _find_step(self) -> _Step | None:
        """Load the table, and return the next range of commits; None if there is nothing new.

        Raises:
            InvalidQueryError: the table is another one now, or a commit showed up behind the position.
        """
        snapshot = open_snapshot(self._snapshot.files, timezone=self._snapshot.timezone)
        by_request_time = compares_request_times(snapshot.config, self._options)
        after = self._locate(snapshot, by_request_time)
        self._check_nothing_late(snapshot.timeline, after, by_request_time)
        found = resolve_range(snapshot.timeline, after or EARLIEST, None, self._options)
        options = self._options
        if found.starts_archived and not self._has_archived(snapshot.timeline, after):
            options = {**options, FALLBACK_TO_FULL_SCAN: "false"}  # it would read everything for nothing
        times = sorted({get_time(each.instant, by_request_time) for each in found.commits})
        times = [time for time in times if found.hole is None or time < found.hole]
        if not times:
            return None
        end = times[-1 if self._most is None else min(self._most, len(times)) - 1]
        hidden = self._find_log_compactions(snapshot.timeline, _cut_range(found, end))
        end = min(hidden.values(), default=end)
        last = None if end == times[-1] and found.hole is None else end
        commits = tuple(each.request_time for each in _cut_range(found, end).commits)
        without = frozenset(each for each, time in hidden.items() if time <= end)
        shown = _hide_commits(snapshot, without, by_request_time) if without else snapshot
        return _Step(
            self._make_scan(shown, after or EARLIEST, last, options),
            commits,
            Position(identify_table(snapshot.config), end, by_request_time),
            frozenset(_list_up_to(snapshot.timeline, end, by_request_time)),
        )

    def _find_log_compactions(self, timeline: TableTimeline, found: CommitRange) -> dict[Instant, str]:
        """Return the log compactions among new commits, with their times; none for changes, which handle them.

        If archived commits are new, the latest rows of all commits are read, and nothing is hidden.
        """
        if self._changes or found.has_archived or found.starts_archived:
            return {}
        return {each: get_time(each, found.by_request_time) for each in find_log_compactions(timeline, found)}

    def _locate(self, snapshot: Snapshot, by_request_time: bool) -> str:
        """Return the time after which commits are new, in the kind of time that the loaded table compares."""
        if identify_table(snapshot.config) != self._position.table:
            parse_position(self.token, snapshot.config)  # raises
        located = locate_position(self._position, snapshot.timeline, by_request_time)
        # A start may lie between commits.
        return max(located, self._after) if self._position.by_request_time == by_request_time else located

    def _has_archived(self, timeline: TableTimeline, after: str) -> bool:
        """Say whether archived commits are new; ranges of request times read them only with a full scan.

        Raises:
            InvalidQueryError: the options forbid that.
        """
        archived = [time for time in timeline.read_archive().completion_times if time > after]
        if archived and not FALLBACK_TO_FULL_SCAN.read(self._options):
            raise InvalidQueryError(
                f"{len(archived)} commits after {after or EARLIEST} are archived.",
                hint=f"{describe_available(timeline, by_request_time=True)} Start later, or leave out max_commits and "
                f"{FALLBACK_TO_FULL_SCAN}=false to get the latest rows of these commits.",
            )
        return bool(archived)

    def _check_nothing_late(self, timeline: TableTimeline, after: str, by_request_time: bool) -> None:
        """Refuse a commit that was missing when the position moved past its time.

        Services are allowed, because they add no rows.
        """
        if self._seen is None:
            return
        for request_time, instant in _list_up_to(timeline, after, by_request_time).items():
            if request_time in self._seen:
                continue
            if timeline.read_metadata(instant).moves_rows:
                self._seen |= {request_time}
                continue
            raise InvalidQueryError(
                f"The commit {request_time} showed up after later ones were read: its rows would be lost.",
                hint="Read them with an incremental query, then go on from the token. Let all writers use one lock.",
                instant=request_time,
                token=self.token,
            )

    def _read_step(self, step: _Step) -> Generator[FollowedBatch, None, None]:
        """Yield the batches of a step; the last one moves the position."""
        # One batch is held back, so that the last one is known when it is yielded.
        held: pa.RecordBatch | None = None
        with closing(step.scan.to_batches()) as batches:
            for batch in batches:
                if self._closed.is_set():
                    return
                if not batch.num_rows:
                    continue
                if held is not None:
                    yield FollowedBatch(held, self.token, is_last=False, commits=step.commits)
                held = batch
        # The position moves before the last batch is yielded, so that its token is the one after the step.
        self._position, self._after, self._seen = step.position, step.position.time, step.seen
        rows = held if held is not None else pa.RecordBatch.from_pylist([], step.scan.schema)
        yield FollowedBatch(rows, self.token, is_last=True, commits=step.commits)


def _cut_range(commit_range: CommitRange, end: str) -> CommitRange:
    """Return the part of a range up to a time."""
    by_request_time = commit_range.by_request_time
    commits = (each for each in commit_range.commits if get_time(each.instant, by_request_time) <= end)
    return replace(commit_range, end=end, commits=tuple(commits))


def _hide_commits(snapshot: Snapshot, commits: frozenset[Instant], by_request_time: bool) -> Snapshot:
    """Return a snapshot whose timeline shows some commits as unfinished."""
    timeline = hide_later(snapshot.timeline, _AFTER_ALL, by_request_time, commits)
    return snapshot.evolve(timeline=TableTimeline(timeline, snapshot.files, snapshot.config))


def _list_up_to(timeline: TableTimeline, time: str, by_request_time: bool) -> dict[str, Instant]:
    """Return the completed writes of the active timeline up to a time, by request time."""
    writes = timeline.list_completed_writes()
    return {each.request_time: each for each in writes if get_time(each, by_request_time) <= time}


def _find_newest(timeline: TableTimeline, by_request_time: bool) -> str:
    """Return the time of the last commit before any unfinished one that could complete behind it."""
    hole = find_first_pending(timeline) if by_request_time else None
    times = (get_time(each, by_request_time) for each in timeline.list_completed_writes())
    return max((each for each in times if hole is None or each < hole), default="")


def _find_reached(timeline: TableTimeline, limit: str, by_request_time: bool) -> str:
    """Return the time of the last commit not after a limit; empty if there is none."""
    reached = find_last_time((get_time(each, by_request_time) for each in timeline.list_completed_writes()), limit)
    if reached:
        return reached
    archived = timeline.read_archive().completion_times
    return find_last_time(archived.keys() if by_request_time else archived.values(), limit)


def _check_poll(poll: float | None) -> float | None:
    is_number = isinstance(poll, (int, float)) and not isinstance(poll, bool)
    if poll is not None and not (is_number and 0 < poll < math.inf):
        raise InvalidQueryError(
            f"The argument poll must be a number of seconds, not {poll!r}.", hint="None ends when there is nothing new."
        )
    return poll


def _check_most(most: int | None) -> int | None:
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most <= 0):
        raise InvalidQueryError(f"The argument max_commits must be a positive number, not {most!r}.")
    return most
