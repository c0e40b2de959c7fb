"""Makes the scan of the rows that a range of commits wrote (Hudi's incremental query).

The rules (Hudi ``MergeOnReadIncrementalRelationV1`` and ``V2``; F4.13, F4.14, F4.14a):

* Only files that the range's commits wrote are read, and they merge only with each other (``touched_slices``). Rows of
  earlier commits in a base file do not merge either. Partial updates are the exception (``range_task``).
* A row is in the result if a commit of the range wrote it (``range_task``). Deleted records are not.
* If a commit has been archived, or files that the range reads are gone, slices of the whole table are read with the
  same filter, if ``hoodie.datasource.read.incr.fallback.fulltablescan.enable`` allows it: by default from version 8 on.
  They are the latest slices or, for a range with an end, what is left of the slices at its end (``touched_slices``).
  Java reads the latest slices if any file is gone that a commit of the range wrote, and so do its options here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from hoodie_py.errors import HoodieWarning, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options import read as read_keys
from hoodie_py.reader.file_slice import BlockRules, FileSlice, InstantRange
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.runtime.wording import format_count
from hoodie_py.table.filter.predicate import Predicate, join_filters
from hoodie_py.table.incremental import commit_range as ranges
from hoodie_py.table.incremental import touched_slices
from hoodie_py.table.incremental.commit_range import CommitRange
from hoodie_py.table.incremental.range_task import RangeTask, make_instant_range, make_row_filter
from hoodie_py.table.incremental.touched_slices import RemainingSlices, make_touched_slices
from hoodie_py.table.scan.arguments import ScanArguments, read_option_texts
from hoodie_py.table.scan.query import Request, SnapshotQuery, Task, make_slice_tasks
from hoodie_py.table.scan.scan import Scan, make_query_scan
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.schema.resolver import TableSchema, resolve_schema
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.cleans import describe_retention
from hoodie_py.table.timeline.time_travel import AsOf, parse_zone
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.partition_values import list_decoded_fields

if TYPE_CHECKING:
    from hoodie_py.table.filter.sql_settings import SqlSettings


def make_incremental_scan(
    snapshot: Snapshot,
    start: AsOf | None = ranges.EARLIEST,
    end: AsOf | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    **arguments: Unpack[ScanArguments],
) -> Scan:
    """Return a scan of the rows that commits after ``start`` and up to ``end`` wrote.

    Other arguments as for ``make_query_scan``.

    Raises:
        InvalidQueryError: a bad range, or an argument that is not valid.
        UnsupportedFeatureError: the table has no meta columns, or a kind of query that is not handled.
    """
    texts = read_option_texts(options)
    check_range_readable(snapshot, texts)
    zone = parse_zone(snapshot.timezone, snapshot.config.timezone)
    written = RangeSnapshot(snapshot, ranges.resolve_range(snapshot.timeline, start, end, texts, zone), texts)
    # Positions count the rows of the whole base file, but only rows of some commits are read.
    settings = {**texts, read_keys.MERGE_USE_POSITIONS: "false"}
    made = make_query_scan(written, IncrementalQuery("incremental"), options=settings, **arguments)
    filters = _parse_filters(read_keys.RANGE_FILTERS.read(texts), written, arguments.get("sql"))
    return replace(made, predicate=join_filters(written.row_filter, *filters, made.predicate))


def _parse_filters(texts: Sequence[str], snapshot: Snapshot, sql: SqlSettings | None) -> list[Predicate | None]:
    if not texts:
        return []
    from hoodie_py.table.filter.as_predicate import as_predicate  # with the parser, which few ranges need
    from hoodie_py.table.filter.sql_settings import of_process

    settings = sql or of_process(snapshot.timezone)
    return [as_predicate(each, snapshot.schema.arrow, settings=settings) for each in texts]


@dataclass(frozen=True, slots=True)
class IncrementalQuery(SnapshotQuery):
    """The rows of a ``RangeSnapshot``."""

    def make_tasks(self, request: Request) -> list[ScanTask]:
        """Return one task for each slice of the range's files."""
        assert isinstance(request.snapshot, RangeSnapshot)
        found = request.snapshot.find_slices(request.predicate)
        planned = None if found.are_whole else _find_last_time(request.snapshot)
        config = request.snapshot.config
        tasks = [_show_stored_values(each, config) for each in make_slice_tasks(request, self.kind, found.slices)]
        return [RangeTask.from_task(each, planned, found.rules) for each in tasks]

    def iterate_tasks(self, request: Request) -> Iterator[Sequence[Task]]:
        """Yield all tasks at once: commits name the files."""
        yield self.make_tasks(request)


@dataclass(frozen=True, slots=True)
class RangeSlices:
    """The slices with rows of a range.

    Attributes:
        slices: sorted by partition and file id.
        are_whole: whether they are slices of the table with all their files; else they have only files of the range.
        rules: which of their log blocks count; None for the snapshot's rules.
    """

    slices: list[FileSlice]
    are_whole: bool = False
    rules: BlockRules | None = None


def _show_stored_values(task: ScanTask, config: TableConfig) -> ScanTask:
    """Return a task whose rows show partition values as files store them, where readers decode those of the path.

    Java's ranges do so: conditions on partition columns alone choose partitions, by the decoded values of their paths,
    while rows show the values in the files.
    """
    names = list_decoded_fields(config, task.file_slice.partition_path)
    decoded = {name: value for name, value in task.info.constants.items() if name in names}
    if not decoded:
        return task
    known = task.info.constants.keys()
    rest = () if task.predicate is None else task.predicate.conjuncts
    left = [each for each in rest if not each.columns or not each.columns <= known]
    constants = {name: value for name, value in task.info.constants.items() if name not in decoded}
    return replace(task, info=replace(task.info, constants=constants), predicate=join_filters(*left))


def _find_last_time(snapshot: RangeSnapshot) -> str:
    """Return the completion time after which commits do not count: that of the range's last commit.

    For a range of request times it is the time of the last known commit, as a commit may complete later and still be in
    the range.
    """
    span = snapshot.commit_range
    if span.commits and not span.by_request_time:
        return span.position
    writes = snapshot.timeline.list_completed_writes()
    return max((ranges.get_time(each, by_request_time=False) for each in writes), default="")


def check_range_readable(snapshot: Snapshot, options: Mapping[str, str]) -> None:
    """Refuse a range if the table or the options cannot have one.

    Raises:
        InvalidQueryError: the options, or the snapshot, ask for an instant of the past.
        UnsupportedFeatureError: the table has no meta columns.
    """
    if read_keys.AS_OF_INSTANT.find_text(options) or snapshot.is_time_travel:
        raise InvalidQueryError("A range of commits has no instant of the past.", hint="Give the range's end instead.")
    if not snapshot.config.populate_meta_fields:
        raise UnsupportedFeatureError(
            "Ranges of commits on a table without meta fields: its rows do not say which commit wrote them.",
            table=snapshot.config.name,
        )


class RangeSnapshot(Snapshot):
    """The rows that a range of commits wrote, in the role of a table's rows at an instant."""

    def __init__(self, base: Snapshot, commit_range: CommitRange, options: Mapping[str, str]) -> None:
        super().__init__(base.files, base.config, base.timeline, timezone=base.timezone, view=base.view)
        self.commit_range = commit_range
        self._base = base
        self._options = options
        glob = read_keys.RANGE_PATH_GLOB.read(options)
        self._glob = None if glob is None else touched_slices.compile_glob(f"*{glob}")

    @property
    def instant(self) -> str | None:
        """Request time of the range's last commit; None for an empty range."""
        return self.commit_range.commits[-1].request_time if self.commit_range.commits else None

    @cached_property
    def schema(self) -> TableSchema:
        """Columns of the table now or, if the options say so, at the end of the range."""
        if self.instant is None or not read_keys.USE_END_SCHEMA.read(self._options):
            return self._base.schema
        return resolve_schema(self.timeline, self.instant)

    @cached_property
    def instants(self) -> InstantRange | None:
        """The commits of the range's rows; None for a range without rows, which has no slices either."""
        if not self.commit_range.commits and not self._reads_archived_rows:
            return None
        committed = {each.request_time for each in self.timeline.list_completed_writes()}
        if self.commit_range.has_archived:
            committed |= self.timeline.read_archive().completion_times.keys()
        return make_instant_range(self.commit_range, committed)

    @property
    def row_filter(self) -> Predicate | None:
        """The filter for the range's rows; None for a range without commits."""
        return None if self.instants is None else make_row_filter(self.instants)

    def read_info(self, file_slice: FileSlice, *, strict: bool = False, predicate: Predicate | None = None) -> ReadInfo:
        """Return the facts that reading one slice needs: base rows of other commits do not merge."""
        return replace(super().read_info(file_slice, strict=strict, predicate=predicate), instants=self.instants)

    def choose_view(self, options: ReadOptions | None = None) -> FileSystemView:
        """Return the view of the table's snapshot."""
        return self._base.choose_view(options)

    def file_slices(
        self,
        query_type: str = "snapshot",
        predicate: Predicate | None = None,
        options: ReadOptions | None = None,
    ) -> list[FileSlice]:
        """Return the slices with rows of the range, without partitions that cannot hold wanted rows.

        Raises:
            InvalidQueryError: files are gone, and the options do not allow reading the latest slices instead.
        """
        return self.find_slices(predicate, options).slices

    def find_slices(self, predicate: Predicate | None = None, options: ReadOptions | None = None) -> RangeSlices:
        """Return the slices as ``file_slices``, and the slices that replace files that are gone."""
        self._warn_of_archived()
        if self.instants is None:
            return RangeSlices([])
        found = self._find_slices(predicate, options)
        if self._glob is None:
            return found
        matching = [each for each in found.slices if self._glob.fullmatch(f"{self.files.uri}/{_get_path(each)}")]
        return replace(found, slices=matching)

    def check_complete(
        self,
        query_type: str = "snapshot",
        predicate: Predicate | None = None,
        options: ReadOptions | None = None,
    ) -> None:
        """Do nothing: missing files are looked up when slices are made, and all sizes are checked later."""

    @property
    def _falls_back(self) -> bool:
        """Whether slices of the table may be read instead of files that are gone."""
        allowed = read_keys.FALLBACK_TO_FULL_SCAN.read_given(self._options)
        return not self.commit_range.by_request_time if allowed is None else allowed

    @property
    def _reads_archived_rows(self) -> bool:
        """Whether slices of the table are read because an end of the range, or a commit in it, has been archived."""
        span = self.commit_range
        return self._falls_back and (span.has_archived or span.starts_archived or span.ends_archived)

    def _find_slices(self, predicate: Predicate | None, options: ReadOptions | None) -> RangeSlices:
        if self._reads_archived_rows:
            return self._find_table_slices(predicate, options)
        span, last = self.commit_range, self.commit_range.commits[-1].request_time
        commits = ranges.read_range_metadata(self.timeline, span)
        written = touched_slices.find_written_files(commits, self._make_path_filter(predicate))
        listing, missing = touched_slices.look_up_files(
            self.files, written, touched_slices.find_certain_files(self.timeline, span, commits)
        )
        slices = make_touched_slices(
            listing, self.view.visibility, last, merge_on_read=self.config.is_merge_on_read, hole=span.hole
        )
        # A range may name older base files, and log files below them, that it does not read.
        needed = sorted(path for each in slices for path in _list_paths(each) if path in missing)
        if self._falls_back and (needed or (missing and ranges.is_asked_as_java(self._options))):
            return self._find_table_slices(predicate, options)
        if needed:
            raise self._make_missing_error(needed)
        return RangeSlices([self.view.make_readable(each) for each in slices])

    def _warn_of_archived(self) -> None:
        """Warn if a range of request times leaves out archived commits, as Java does silently."""
        span = self.commit_range
        if not span.starts_archived or self._falls_back:
            return
        left_out = sum(time > span.start for time in self.timeline.read_archive().completion_times)
        if left_out:
            text = (
                f"{format_count(left_out, 'commit')} of the range {span} are archived. Up to table version 6 a range "
                "begins with the active timeline, so rows of files that only these commits wrote are missing. "
                f"{read_keys.FALLBACK_TO_FULL_SCAN}=true reads the latest rows of all commits."
            )
            warnings.warn(HoodieWarning(text), stacklevel=2)

    def _find_table_slices(self, predicate: Predicate | None, options: ReadOptions | None) -> RangeSlices:
        """Return the latest slices or, for a range with an end, what is left of the slices at its end."""
        span = self.commit_range
        if span.end is None:
            return RangeSlices(super().file_slices("snapshot", predicate, options), are_whole=True)
        as_java = ranges.is_asked_as_java(self._options)
        stand_in = "The latest file slices are" if as_java else "What is left of the file slices at its end is"
        text = (
            f"Files or commits of the range {span} are cleaned or archived. {stand_in} read instead, where rows that "
            "were changed after the range may be missing. "
            f"{read_keys.FALLBACK_TO_FULL_SCAN}=false makes this an error. {describe_retention(self.timeline)}"
        )
        warnings.warn(HoodieWarning(text), stacklevel=2)
        if as_java:
            return self._find_latest_slices(predicate, options)
        view = self.choose_view(options)
        paths = [each.partition.path for each in self._list_partitions(view, predicate)]
        remaining = RemainingSlices(view, span.end, by_request_time=span.by_request_time)
        return RangeSlices(remaining.list_slices(paths), are_whole=True, rules=remaining.rules)

    def _find_latest_slices(self, predicate: Predicate | None, options: ReadOptions | None) -> RangeSlices:
        """Return the latest slices, as Java reads them.

        Parquet blocks count only if they are of the range's commits.
        """
        rules = self.view.make_block_rules()
        columnar = None if self.commit_range.by_request_time else self.instants
        found = super().file_slices("snapshot", predicate, options)
        return RangeSlices(found, are_whole=True, rules=replace(rules, parquet=columnar))

    def _make_missing_error(self, paths: Sequence[str]) -> InvalidQueryError:
        return InvalidQueryError(
            f"{len(paths)} files of the range {self.commit_range} are gone: they were cleaned.",
            hint=f"{ranges.describe_available(self.timeline, self.commit_range.by_request_time)} Start later, or set "
            f"{read_keys.FALLBACK_TO_FULL_SCAN}=true to read what is left of these commits' rows. "
            f"{describe_retention(self.timeline)}",
            path=paths[0],
        )


def _list_paths(file_slice: FileSlice) -> list[str]:
    base = [] if file_slice.base_file is None else [file_slice.base_file.path]
    return [*base, *(log.path for log in file_slice.log_files)]


def _get_path(file_slice: FileSlice) -> str:
    """Return the path that Java matches with a glob: the base file's, or the latest log file's."""
    if file_slice.base_file is not None:
        return file_slice.base_file.path
    return file_slice.log_files[-1].path
