"""RangeTask: the rows of one file slice that a range of commits wrote.

These are the rows whose ``_hoodie_commit_time`` is the request time of one of the range's commits. Partial updates
(MERGE INTO) store only the columns that they set. The others come from versions that may lie before the range. Only the
log blocks show this, so the task finds out when it reads them; it then reads the whole slice as of the range's last
commit, with the same filter. (Java 1.2.0 fails there, or shows nulls.) If slices of the table stand in for files that
are gone, it reads the slice as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.errors import FileMissingError, InvalidQueryError
from hoodie_py.formats.names import COMMIT_TIME_FIELD
from hoodie_py.reader.file_slice import BlockRules, FileSlice, InstantRange, PartialRowsError
from hoodie_py.table.filter.predicate import And, Column, Comparison, InList, Literal, Node, Not, Predicate
from hoodie_py.table.incremental.commit_range import CommitRange, hide_later
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import TableTimeline, load_timeline
from hoodie_py.table.view.committed_logs import CommittedLogs

if TYPE_CHECKING:
    from hoodie_py.runtime.fold_gate import FoldGate

_TEXT = pa.string()
_TIME = Column((COMMIT_TIME_FIELD,), _TEXT)


@dataclass(frozen=True, slots=True, repr=False)
class RangeTask(ScanTask):
    """The rows of a slice of a range's files; the predicate includes the range's filter.

    ``planned``: a completion time; commits that completed later do not count. It is the time of the range's last
    commit, as others may have been requested before it, or else of the latest commit known when the range was planned;
    otherwise a range read twice could have different rows. None if the slice is one of the table.
    """

    planned: str | None = None

    @classmethod
    def from_task(cls, task: ScanTask, planned: str | None, rules: BlockRules | None) -> RangeTask:
        """Return the task for the same slice and rows.

        ``rules``: which log blocks count; None keeps the task's rules.
        """
        made = cls(**{each.name: getattr(task, each.name) for each in fields(task)}, planned=planned)
        if rules is None:
            return made
        committed = CommittedLogs(task.info.files, task.info.config, rules)
        return replace(made, info=replace(task.info, rules=rules, committed=committed))

    def to_batches(self, gate: FoldGate | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Yield the task's rows; errors as for ``ScanTask``.

        Raises:
            InvalidQueryError: rows that partial updates need were cleaned.
            FileMissingError: a file was cleaned or lost since the timeline was read.
        """
        try:
            yield from ScanTask.to_batches(self, gate)
        except PartialRowsError:  # comes before any row
            yield from self._read_whole_slice().to_batches(gate)
        except FileMissingError as error:
            raise FileMissingError(
                "A file of the range is gone: it was cleaned since the timeline was read, or it is lost.",
                hint="Open the table again, and ask once more.",
                **error.where,
            ) from error

    def _read_whole_slice(self) -> ScanTask:
        if self.planned is None:
            return self._make_task(self.file_slice, self.info.rules)
        instants = self.info.instants
        assert instants is not None
        group, files, config = self.file_slice, self.info.files, self.info.config
        timeline = hide_later(load_timeline(files, config), self.planned, by_request_time=False)
        view = Snapshot(files, config, TableTimeline(timeline, files, config)).view
        found = [
            each for each in view.list_slices(instants.last, [group.partition_path]) if each.file_id == group.file_id
        ]
        if not found:
            raise InvalidQueryError(
                "Partial updates of the range need rows that are gone: they were cleaned.",
                hint="Start the range later, or read the table's rows now with a filter on _hoodie_commit_time.",
                file_group=group.file_id,
                partition=group.partition_path,
                instant=instants.last,
            )
        return self._make_task(found[0], replace(self.info.rules, query_instant=instants.last))

    def _make_task(self, file_slice: FileSlice, rules: BlockRules) -> ScanTask:
        info = replace(self.info, instants=None, rules=rules)
        return ScanTask(file_slice, info, self.columns, self.predicate, self.options, self.merger, self.limit)


def make_instant_range(commit_range: CommitRange, committed: Collection[str]) -> InstantRange:
    """Return the request times of a range's rows; ``committed`` has the request times of all known writes.

    Up to table version 6, Java compares with the first and the last commit (``MergeOnReadIncrementalRelationV1``); from
    version 8 on, with the set of the commits (``V2``). A set of many commits is written as an interval with exceptions,
    which is small and equivalent, as rows only have request times of committed writes.

    The range must have commits, or compare request times with both ends in the archive.
    """
    times = [each.request_time for each in commit_range.commits]
    if commit_range.by_request_time:
        first = commit_range.start if commit_range.starts_archived else times[0]
        last = times[-1] if commit_range.end is None or not commit_range.ends_archived else commit_range.end
        return InstantRange(first, last, is_open=commit_range.starts_archived)
    first, last = times[0], times[-1]
    inside = set(times)
    others = sorted(time for time in set(committed) - inside if first < time < last)
    if len(others) > len(times):
        return InstantRange(first, last, only=tuple(times))
    return InstantRange(first, last, others=tuple(others))


def make_row_filter(instants: InstantRange) -> Predicate:
    """Return the filter for rows of these commits."""
    if instants.only is not None:
        return Predicate(InList(_TIME, instants.only))
    if instants.first == instants.last and not instants.is_open:
        return Predicate(_compare("=", instants.first))
    bounds = [_compare(">" if instants.is_open else ">=", instants.first), _compare("<=", instants.last)]
    others: list[Node] = [Not(InList(_TIME, instants.others))] if instants.others else []
    return Predicate(And((*bounds, *others)))


def _compare(operator: str, time: str) -> Comparison:
    return Comparison(operator, _TIME, Literal(time, _TEXT))
