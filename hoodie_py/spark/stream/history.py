"""History: the commits of a table, as a stream reads them batch by batch.

* A batch reads the table as it was at the batch's end. Later commits count as unfinished, so that for example a later
  clustering does not change which rows the batch has, if Spark asks for it again.
* Log compactions give their own commit time to the rows that they rewrite; compactions and clusterings keep it. So they
  count as unfinished in the batch that they lie in: its rows come from the log blocks of the commits themselves. And
  the batch ends there, because base files made later from their rows do not show which commit wrote these.
* The first batch of a stream from the beginning is a snapshot of the table at the batch's end: it has the last version
  of every row. That is what an incremental query from the beginning gives, and it needs no archived commits and no
  cleaned files. It reaches at least to the earliest state that the table can show, which has the rows of all archived
  commits.
* Every other batch needs all its commits and their files. If some are archived or cleaned, that is an error, never
  fewer rows; unless the user allows reading the latest file slices instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.errors import FileMissingError, InvalidQueryError
from hoodie_py.formats.timeline.instants import CLEAN, Instant
from hoodie_py.options.read import FALLBACK_TO_FULL_SCAN, RANGE_FILTERS, RANGE_PATH_GLOB, STREAM_START
from hoodie_py.options.write import COMMITS_RETAINED, KEEP_MIN_COMMITS
from hoodie_py.spark.load_options import LoadOptions
from hoodie_py.spark.reading.reader import make_load_scan, match_columns
from hoodie_py.spark.stream.limits import Limits, choose_end
from hoodie_py.spark.stream.offset import BEGINNING, StreamOffset
from hoodie_py.spark.stream.options import StreamOptions
from hoodie_py.table.incremental.commit_range import (
    EARLIEST,
    LATEST,
    CommitRange,
    RangeCommit,
    compares_request_times,
    find_first_pending,
    find_log_compactions,
    get_time,
    hide_later,
    parse_time,
    resolve_range,
)
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.cleans import find_kept_since
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.timeline.time_travel import parse_zone

if TYPE_CHECKING:
    from hoodie_py.table.scan.scan import Scan


class History:
    """A table, loaded once, and the options of a stream."""

    def __init__(self, snapshot: Snapshot, options: StreamOptions) -> None:
        self._snapshot = snapshot
        self._timeline = snapshot.timeline
        self._options = options
        self._by_request_time = compares_request_times(snapshot.config, options.hoodie)

    def find_start(self) -> StreamOffset:
        """Return where the stream begins.

        Raises:
            InvalidQueryError: the start is no time.
        """
        if self._options.start == EARLIEST:
            return self._make_offset(BEGINNING)
        if self._options.start == LATEST:
            return self._make_offset(self.find_last_position())
        zone = parse_zone(self._snapshot.timezone, self._snapshot.config.timezone)
        return self._make_offset(parse_time(self._options.start, zone))

    def find_last_position(self) -> str:
        """Return the position of the last commit that a stream may read now."""
        times = map(self._get_time, self._list_readable())
        return max(self._find_last_archived(), max(times, default=BEGINNING))

    def choose_end(self, start: StreamOffset, limits: Limits, last: str | None) -> StreamOffset:
        """Return the end of the batch that begins at an offset; the offset itself if there is nothing to read.

        ``last``: the last position that the query may read; None for no bound.

        Raises:
            InvalidQueryError: the offset does not belong to this table.
        """
        start.check(self._timeline, self._by_request_time)
        least, commits = BEGINNING, self._find_commits(start.position)
        if self._begins_with_snapshot(start):
            least = self._find_first_state()
        span = CommitRange(
            start.position,
            last,
            tuple(each for each in commits if last is None or self._get_time(each.instant) <= last),
            self._by_request_time,
        )
        if not span.commits:
            return start
        # A batch that is a snapshot ends no earlier than the first state that the table can show.
        return self._make_offset(max(choose_end(self._timeline, span, limits, least), least))

    def make_scan(self, start: StreamOffset, end: StreamOffset, target: pa.Schema) -> Scan:
        """Return the scan of a batch, with the columns that Spark declares.

        Raises:
            InvalidQueryError: an offset does not belong to this table, or commits or files of the batch are gone.
        """
        for offset in (start, end):
            offset.check(self._timeline, self._by_request_time)
        if self._begins_with_snapshot(start):
            then = self._show_then(end.position)
            scan = _make_scan(then, self._options.as_snapshot(), target)
            self._check_kept(then, end)
            return scan
        options = self._options.limit_range(start.position, end.position)
        if FALLBACK_TO_FULL_SCAN.read(options.hoodie):
            return _make_scan(self._snapshot, options, target)
        span = self._find_range(start, end)
        return _make_scan(self._show_then(end.position, self._find_log_compactions(span)), options, target)

    def _make_offset(self, position: str) -> StreamOffset:
        return StreamOffset.make(self._timeline, position, self._by_request_time)

    def _get_time(self, instant: Instant) -> str:
        return get_time(instant, self._by_request_time)

    def _begins_with_snapshot(self, start: StreamOffset) -> bool:
        """Whether the batch that begins at an offset is a snapshot.

        Not with filters, which Java has only for ranges.
        """
        ranged = RANGE_FILTERS.read(self._options.hoodie) or RANGE_PATH_GLOB.read(self._options.hoodie)
        return start.position == BEGINNING and not self._options.is_cdc and not ranged

    def _list_readable(self) -> Sequence[Instant]:
        """Return the completed commits of the active timeline that no unfinished commit can precede."""
        writes = self._timeline.list_completed_writes()
        hole = find_first_pending(self._timeline) if self._by_request_time else None
        return [each for each in writes if hole is None or each.request_time < hole]

    def _find_commits(self, position: str) -> tuple[RangeCommit, ...]:
        """Return the commits after a position, without archived ones if ``make_scan`` looks for them."""
        if position == BEGINNING or self._by_request_time:
            return tuple(RangeCommit(each) for each in self._list_readable() if self._get_time(each) > position)
        return resolve_range(self._timeline, position, None, self._options.hoodie).commits

    def _find_first_state(self) -> str:
        """Return the earliest readable position, judging by cleans and the archive."""
        since = find_kept_since(self._timeline) or ""
        least = max(self._find_last_before(since), self._find_last_archived())
        kept = (self._get_time(each) for each in self._list_readable() if each.request_time >= since)
        return max(least, min(kept, default=self.find_last_position()))

    def _find_last_archived(self) -> str:
        """Return the last position of archived writes, whose rows every state shows.

        Archival goes by request times, so this may be after the completion of an active commit.
        """
        if self._by_request_time:
            return BEGINNING
        return max(self._timeline.read_archive().completion_times.values(), default=BEGINNING)

    def _find_last_before(self, since: str) -> str:
        """Return the last position of writes requested before a time from which on cleans keep commits.

        Cleans go by request times. A compaction requested earlier replaces its slices for them, even if it completed
        later: states before its completion need the older slices.
        """
        writes = self._timeline.list_completed_writes()
        return max((self._get_time(each) for each in writes if each.request_time < since), default=BEGINNING)

    def _show_then(self, position: str, without: AbstractSet[Instant] = frozenset()) -> Snapshot:
        """Return the table as it was at a position, ``without`` some commits, with the columns that it has now."""
        timeline = TableTimeline(
            hide_later(self._timeline, position, self._by_request_time, without),
            self._snapshot.files,
            self._snapshot.config,
        )
        return self._snapshot.evolve(timeline=timeline, schema=self._snapshot.schema)

    def _check_kept(self, then: Snapshot, end: StreamOffset) -> None:
        """Check that cleans kept the files of a state of the past: a listing would not show that they are missing.

        Raises:
            InvalidQueryError: files are gone, or all commits are archived.
        """
        writes = then.timeline.list_completed_writes()
        if not writes or self._find_last_archived() > end.position:
            raise self._make_gone_error("the commits up to", end)
        since = find_kept_since(self._timeline, writes[-1].request_time)
        if since is not None and writes[-1].request_time >= since and self._find_last_before(since) <= end.position:
            return
        if not (self._timeline.select_actions(CLEAN).instants or self._timeline.read_archive().instants):
            return
        try:
            then.check_complete()
        except FileMissingError as error:
            raise self._make_gone_error("files of the state at", end) from error

    def _find_log_compactions(self, span: CommitRange) -> frozenset[Instant]:
        """Return the log compactions of a range; none for changes, which handle them."""
        return frozenset() if self._options.is_cdc else find_log_compactions(self._timeline, span)

    def _find_range(self, start: StreamOffset, end: StreamOffset) -> CommitRange:
        """Return the commits of a batch, none of which may be archived.

        Raises:
            InvalidQueryError: one is.
        """
        span = resolve_range(self._timeline, start.position or EARLIEST, end.position, self._options.hoodie)
        archived = any(each.is_archived for each in span.commits)
        if self._by_request_time and self._timeline.is_archived_before(start.position):
            active = {each.request_time for each in self._timeline.list_completed_writes()}
            times = self._timeline.read_archive().completion_times.keys() - active  # such a range leaves them out
            archived = any(start.position < time <= end.position for time in times)
        if archived:
            raise self._make_gone_error("commits up to", end)
        return span

    def _make_gone_error(self, what: str, end: StreamOffset) -> InvalidQueryError:
        times = sorted(map(self._get_time, self._list_readable()))
        kept = f"There are commits from {times[0]} to {times[-1]}. " if times else ""
        if self._options.is_cdc:
            remedy = f"{STREAM_START} says where it begins, such as {times[0] if times else LATEST}."
        else:
            remedy = (
                f"{STREAM_START}={EARLIEST} gives all rows that the table has. Or set {FALLBACK_TO_FULL_SCAN}=true, "
                "which gives the latest rows of these commits."
            )
        return InvalidQueryError(
            f"The stream comes too late: {what} {end.position} are archived or cleaned.",
            hint=f"{kept}Start the query with another checkpoint; {remedy} {COMMITS_RETAINED} and "
            f"{KEEP_MIN_COMMITS} of the writers say how many commits stay.",
            table=self._snapshot.config.name,
        )


def _make_scan(snapshot: Snapshot, options: LoadOptions, target: pa.Schema) -> Scan:
    return make_load_scan(snapshot, options, match_columns(target, make_load_scan(snapshot, options).schema))
