"""When a compaction is due (Hudi ``CompactionTriggerStrategy``, ``ScheduleCompactionActionExecutor``)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.writer.settings import PlanSettings


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
