"""Which slices a compaction plan takes, and in what order (Hudi ``CompactionStrategy`` and its subclasses).

A strategy selects from an ordered list of operations, and gives a reason for each operation that it leaves out. Several
strategies apply one after another, as in Hudi's ``CompositeCompactionStrategy``. Strategies by days read partition
paths as ``yyyy/MM/dd`` without hive-style names, and refuse a table whose partitions are no dates.

When a compaction is due (Hudi ``CompactionTriggerStrategy``, ``ScheduleCompactionActionExecutor``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT
from hoodie_py.formats.timeline.plans import CompactionOperation
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.settings import PlanSettings

LOG_FILES = "TOTAL_LOG_FILES"
LOG_BYTES = "TOTAL_LOG_FILES_SIZE"
READ_MB = "TOTAL_IO_READ_MB"
WRITE_MB = "TOTAL_IO_WRITE_MB"
IO_MB = "TOTAL_IO_MB"

_MEGABYTE = 1024 * 1024
_HIVE_NAME = re.compile(r"(^|/)[^/=]*=")
_DAY = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})")


@dataclass(frozen=True, slots=True)
class Choice:
    """Operations that are taken, in the order of the plan, and the reasons against the others, by file group."""

    taken: tuple[CompactionOperation, ...]
    left_out: Mapping[GroupKey, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a strategy chooses from. Operations, one for each slice with log files, are in listing order; ``partitions``
    are all of the table.
    """

    operations: tuple[CompactionOperation, ...]
    partitions: tuple[str, ...]
    today: date


def measure_operation(base_bytes: int | None, log_bytes: Sequence[int], max_file_size: int) -> dict[str, float]:
    """Return the metrics that Hudi stores with an operation: log files, their bytes, and whole MB to read and write. A
    slice without base file (None) is expected to write ``max_file_size`` bytes.
    """
    read = ((base_bytes or 0) + sum(log_bytes)) // _MEGABYTE
    write = (max_file_size if base_bytes is None else base_bytes) // _MEGABYTE
    return {
        LOG_FILES: float(len(log_bytes)),
        LOG_BYTES: float(sum(log_bytes)),
        READ_MB: float(read),
        WRITE_MB: float(write),
        IO_MB: float(read + write),
    }


def choose_operations(offer: Candidates, settings: PlanSettings) -> Choice:
    """Apply the strategies that the settings name.

    Raises:
        InvalidQueryError: a strategy is unknown, a pattern is bad, or partitions must be dates and are not.
    """
    if not settings.strategies:
        raise InvalidQueryError("No compaction strategy is named.", hint=_list_known())
    taken, left_out = offer.operations, dict[GroupKey, str]()
    for name in settings.strategies:
        rule = STRATEGIES.get(name)
        if rule is None:
            raise InvalidQueryError(f"Unknown compaction strategy {name[:200]!r}.", hint=_list_known())
        choice = rule(Candidates(taken, offer.partitions, offer.today), settings)
        taken = choice.taken
        left_out.update(choice.left_out)
    return Choice(taken, left_out)


def _list_known() -> str:
    return f"Known: {', '.join(sorted(STRATEGIES))}."


def _get_key(operation: CompactionOperation) -> GroupKey:
    return operation.partition_path, operation.file_id


def _split(
    operations: Iterable[CompactionOperation], keep: Callable[[CompactionOperation], bool], reason: str
) -> tuple[list[CompactionOperation], dict[GroupKey, str]]:
    kept: list[CompactionOperation] = []
    left_out: dict[GroupKey, str] = {}
    for operation in operations:
        if keep(operation):
            kept.append(operation)
        else:
            left_out[_get_key(operation)] = reason
    return kept, left_out


def _take_all(offer: Candidates, _: PlanSettings) -> Choice:
    return Choice(offer.operations)


def _take_within_io(offer: Candidates, settings: PlanSettings) -> Choice:
    """Take operations until the IO target is reached, with the one that reaches it."""
    remaining = settings.target_io_mb
    taken: list[CompactionOperation] = []
    left_out: dict[GroupKey, str] = {}
    for operation in offer.operations:
        if remaining > 0:
            remaining -= int(operation.metrics[IO_MB])
            taken.append(operation)
        else:
            left_out[_get_key(operation)] = f"the plan's {settings.target_io_mb} MB of IO are used up"
    return Choice(tuple(taken), left_out)


def _take_by_log_size(offer: Candidates, settings: PlanSettings) -> Choice:
    """Take slices with the most log bytes first, up to the IO target."""
    least = settings.log_size_threshold
    reason = f"its log files have less than {least} bytes"
    kept, left_out = _split(offer.operations, lambda each: each.metrics[LOG_BYTES] >= least, reason)
    kept.sort(key=lambda each: int(each.metrics[LOG_BYTES]), reverse=True)
    return _apply_next(_take_within_io, kept, left_out, offer, settings)


def _take_by_log_number(offer: Candidates, settings: PlanSettings) -> Choice:
    """Take slices with the most log files first, up to the IO target."""
    least = settings.log_number_threshold
    reason = f"it has fewer than {least} log files"
    kept, left_out = _split(offer.operations, lambda each: len(each.delta_files) >= least, reason)
    kept.sort(key=lambda each: len(each.delta_files), reverse=True)
    return _apply_next(_take_within_io, kept, left_out, offer, settings)


def _take_newest_days(offer: Candidates, settings: PlanSettings) -> Choice:
    """Take the newest partitions of the table, up to the IO target."""
    newest = sorted(offer.partitions, key=_parse_day, reverse=True)[: settings.target_partitions]
    reason = f"its partition is none of the newest {settings.target_partitions}"
    kept, left_out = _split(offer.operations, lambda each: each.partition_path in newest, reason)
    kept.sort(key=lambda each: newest.index(each.partition_path))
    return _apply_next(_take_within_io, kept, left_out, offer, settings)


def _take_recent_days(offer: Candidates, settings: PlanSettings) -> Choice:
    """Take partitions of the last ``target_partitions`` days, and later ones than today."""
    earliest = offer.today - timedelta(days=settings.target_partitions)
    reason = f"its partition is before {earliest}"
    kept, left_out = _split(offer.operations, lambda each: _parse_day(each.partition_path) >= earliest, reason)
    kept.sort(key=lambda each: _parse_day(each.partition_path), reverse=True)
    return Choice(tuple(kept), left_out)


def _take_older_days(offer: Candidates, settings: PlanSettings) -> Choice:
    """Take the operations that ``_take_recent_days`` leaves out."""
    earliest = offer.today - timedelta(days=settings.target_partitions)
    reason = f"its partition is not before {earliest}"
    kept, left_out = _split(offer.operations, lambda each: _parse_day(each.partition_path) < earliest, reason)
    kept.sort(key=lambda each: each.partition_path, reverse=True)
    return Choice(tuple(kept), left_out)


def _take_matching_partitions(offer: Candidates, settings: PlanSettings) -> Choice:
    """Take partitions whose path contains a match of the pattern."""
    pattern = settings.partition_regex
    if pattern is None:
        raise InvalidQueryError("The strategy goes by a pattern of partition paths, and none is given.")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidQueryError(f"The pattern of partition paths cannot be understood: {error}.") from error
    reason = f"its partition does not match {pattern!r}"
    kept, left_out = _split(offer.operations, lambda each: compiled.search(each.partition_path) is not None, reason)
    return Choice(tuple(kept), left_out)


def _apply_next(
    rule: Callable[[Candidates, PlanSettings], Choice],
    kept: Sequence[CompactionOperation],
    left_out: dict[GroupKey, str],
    offer: Candidates,
    settings: PlanSettings,
) -> Choice:
    choice = rule(Candidates(tuple(kept), offer.partitions, offer.today), settings)
    return Choice(choice.taken, {**left_out, **choice.left_out})


def _parse_day(partition: str) -> date:
    match = _DAY.match(_HIVE_NAME.sub(r"\1", partition))
    try:
        year, month, day = match.groups() if match is not None else ("", "", "")
        return date(int(year), int(month), int(day))
    except ValueError as error:
        raise InvalidQueryError(
            f"Partition {partition[:200]!r} is no day, which the compaction strategy goes by.",
            hint="Days are yyyy/MM/dd; choose another strategy for this table.",
        ) from error


STRATEGIES: Mapping[str, Callable[[Candidates, PlanSettings], Choice]] = {
    "LogFileSizeBasedCompactionStrategy": _take_by_log_size,
    "LogFileNumBasedCompactionStrategy": _take_by_log_number,
    "BoundedIOCompactionStrategy": _take_within_io,
    "UnBoundedCompactionStrategy": _take_all,
    "DayBasedCompactionStrategy": _take_newest_days,
    "BoundedPartitionAwareCompactionStrategy": _take_recent_days,
    "UnBoundedPartitionAwareCompactionStrategy": _take_older_days,
    "PartitionRegexBasedCompactionStrategy": _take_matching_partitions,
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """What happened since the last compaction, beside what must have happened.

    Attributes:
        name: which of the figures count, by Hudi's name.
        commits, most_commits: delta commits since the last compaction (of NUM_COMMITS_AFTER_LAST_REQUEST: since its
            plan), and how many make the next one due.
        seconds, most_seconds: the same for time.
        last: request time of the last compaction; "" before the first.
    """

    name: str
    commits: int
    most_commits: int
    seconds: int
    most_seconds: int
    last: str

    @property
    def is_due(self) -> bool:
        """Whether a compaction is due."""
        enough, late = self.commits >= self.most_commits, self.seconds >= self.most_seconds
        if self.name == "TIME_ELAPSED":
            return late
        if self.name == "NUM_AND_TIME":
            return enough and late
        if self.name == "NUM_OR_TIME":
            return enough or late
        return enough

    def __str__(self) -> str:
        counts = f"{self.commits} of {self.most_commits} delta commits"
        times = f"{self.seconds:,} of {self.most_seconds:,} seconds"
        figures = {"TIME_ELAPSED": times, "NUM_AND_TIME": f"{counts} and {times}", "NUM_OR_TIME": f"{counts}, {times}"}
        since = f"since the compaction at {self.last}" if self.last else "and no compaction yet"
        return f"{figures.get(self.name, counts)} {since}"


def judge_trigger(timeline: Timeline, instant: str, settings: PlanSettings) -> Trigger | None:
    """Return what the settings' trigger goes by; None for a table that nobody wrote to. ``instant`` is now."""
    deltas = timeline.select_completed().select_actions(DELTA_COMMIT).instants
    last = timeline.select_completed().select_actions(COMMIT).last
    if not deltas and last is None:
        return None
    name = settings.trigger or "NUM_COMMITS"
    since = asked = "" if last is None else last.request_time
    if name == "NUM_COMMITS_AFTER_LAST_REQUEST":
        asked = max((each.request_time for each in timeline if each.comparable_action == COMMIT), default="")
    commits = sum((each.completion_time or each.request_time) > asked for each in deltas)
    seconds = _to_seconds(instant) - _to_seconds(since or deltas[0].request_time)
    return Trigger(name, commits, settings.delta_commits, seconds, settings.delta_seconds, since)


def _to_seconds(instant: str) -> int:
    moment = datetime.strptime(instant[:14], "%Y%m%d%H%M%S")  # noqa: DTZ007 - both ends are in the table's zone
    return int((moment - datetime.min).total_seconds())  # noqa: DTZ901
