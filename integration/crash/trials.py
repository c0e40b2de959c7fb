"""Trials: an operation on a table, cut short at one call in one way; then the checks."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hoodie_py import CommitStateUnknownError, HoodieError, HoodieTable, InvalidQueryError, UnsupportedFeatureError
from integration.crash import checks
from integration.crash.aftermath import problems, scratch
from integration.crash.children import DIED, DONE, in_a_child
from integration.crash.faults import KILL_BEFORE, KILLS, NOTHING, REMOVALS, Plan, faults_of, faulty, kind_of
from integration.crash.operations import Operation, Subject, subject_of
from integration.crash.steps import STEPS
from integration.crash.stores import Place, State, files_at, open_table
from integration.crash.writes import strays

_SCRATCH = re.compile(r"\.[0-9a-f]{32}\.tmp$")
_MAY_GO_AFTERWARDS = (".hoodie/.heartbeat/", ".hoodie/lock", ".hoodie/.lock.crc", ".hoodie/.locks/")
_AN_HOUR = 3600.0
_REFUSALS = (UnsupportedFeatureError.__name__, InvalidQueryError.__name__)


class NotPossible(Exception):
    """An operation cannot be done to this table: it is refused."""


class Broken(Exception):
    """An operation that nothing disturbed ends in an error that is no refusal, or leaves a table that is not right."""


@dataclass(frozen=True)
class Trial:
    """One trial and what came of it; ``reached`` is false where the operation ended before the call."""

    table: str
    version: int
    metadata_table: bool
    store: str
    lock: str
    operation: str
    number: int
    verb: str
    kind: str
    fault: str
    outcome: str
    reached: bool
    scratch: int
    problems: tuple[str, ...]

    @property
    def combination(self) -> tuple[Any, ...]:
        """What tells one trial from another, tables of one kind taken for one."""
        return (
            self.operation, self.number, self.verb, self.kind, self.fault, self.version, self.metadata_table, self.store
        )  # fmt: skip

    @property
    def job(self) -> tuple[str, str, str, str]:
        """Where it was made."""
        return self.store, self.lock, self.table, self.operation

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Answer:
    """What a child says of an operation: "done" or the error's name, its calls, and those that came after the fault."""

    outcome: str
    calls: tuple[tuple[str, str], ...]
    text: str = ""


class Bench:
    """One operation on one table on one store.

    Args:
        place: where; nobody else uses it meanwhile.
        state: the table as it is to begin with.
        operation: what is cut short.
        options: of the writer.
        name: of the table, for reports.
        lock: name of the options' lock, for reports.

    Raises:
        NotPossible: the operation, undisturbed, is refused.
        Broken: it is not right undisturbed, or what comes before it.
    """

    def __init__(
        self, place: Place, state: State, operation: Operation, options: dict[str, str], name: str, lock: str
    ) -> None:
        self._place, self._operation, self._options = place, operation, options
        self._name, self._lock = name, lock
        self.undo_first: bool | None = None  # go on after a cut by a rollback; None: for half the ends, by lot
        self._moment = self._began = datetime.now(UTC)
        self._known: dict[Any, list[str]] = {}
        for number, step in enumerate(operation.setup):
            state = self._after(step, state, self._moment + timedelta(minutes=number))
        self._moment += timedelta(minutes=10)
        self._start = state
        self._load_start()
        self._version, self._has_metadata, self._subject, self._before = self._ask(self._look)
        self._sizes = place.sizes()
        self._strays = set(self._ask(self._list_strays)) if operation.folds else set[str]()
        if operation.pending and not self._subject.instant:
            raise NotPossible(f"no {operation.pending} is pending")
        answer = self._attempt(Plan(), operation.act, self._moment)
        if answer.outcome != DONE:
            raise _not_done(operation.name, answer)
        self.calls = answer.calls
        after = place.sizes()
        gone = {path for path in self._sizes if checks.is_data_file(path) and path not in after}
        self._permitted = gone if operation.removes or operation.undoes_a_write else set[str]()
        faults = self._judge(after)
        if faults:
            raise Broken(f"{operation.name}: {faults}")

    @property
    def points(self) -> list[tuple[int, str]]:
        """Every call and everything that can go wrong at it."""
        return [
            (number, fault)
            for number, (verb, _) in enumerate(self.calls)
            for fault in faults_of(verb, self._place.store)
        ]

    def some(self, seed: int, share: float, done: AbstractSet[tuple[int, str]] = frozenset()) -> list[tuple[int, str]]:
        """Return a share of the points, by lot, save those that are done."""
        points = [point for point in self.points if point not in done]
        lot = random.Random(f"{seed}/{self._name}/{self._place.store}/{self._lock}/{self._operation.name}")
        return sorted(lot.sample(points, math.ceil(len(points) * min(share, 1.0))))

    def run(self, points: list[tuple[int, str]]) -> Iterator[Trial]:
        """Make trials."""
        for number, fault in points:
            yield self.trial(number, fault)

    def trial(self, number: int, fault: str) -> Trial:
        """Cut the operation short at a call, and check."""
        self._load_start()
        plan = Plan(number, fault)
        answer = self._attempt(plan, self._operation.act, self._moment)
        sizes = self._place.sizes()
        reached = answer.outcome == DIED or len(answer.calls) > number
        verb, path = self.calls[number]
        found = self._of_the_process(answer, number, fault) + self._of_files(answer, sizes) + self._judge(sizes)
        return Trial(
            table=self._name, version=self._version, metadata_table=self._has_metadata, store=self._place.store,
            lock=self._lock, operation=self._operation.name, number=number, verb=verb, kind=kind_of(path), fault=fault,
            outcome=answer.outcome, reached=reached, scratch=len(scratch(sizes)), problems=tuple(found),
        )  # fmt: skip

    def _load_start(self) -> None:
        self._place.load(self._start)
        self._place.let_time_pass(_AN_HOUR)  # whoever died in the setup did that long ago

    # The operation, in a process that may die -------------------------------------------------------------------

    def _attempt(self, plan: Plan, act: Callable[[HoodieTable, Subject], Any], moment: datetime) -> Answer:
        subject = getattr(self, "_subject", Subject(self._options))

        def work() -> Answer:
            files = faulty(files_at(self._place), plan)
            table = open_table(files)
            plan.armed = True
            try:
                act(table, subject)
            except HoodieError as error:
                return Answer(type(error).__name__, tuple(plan.calls), str(error))
            return Answer(DONE, tuple(plan.calls))

        how, answer = in_a_child(work, moment, f"{self._name} {moment - self._began}")
        return answer if how == DONE else Answer(how, (), str(answer))

    def _after(self, step: str, state: State, moment: datetime) -> State:
        """Return the state that a step of the operation's setup leads to."""
        self._place.load(state)
        if step == "-deltacommit":
            return _without_last_commit(state)
        name, _, died_before = step.partition("!")
        answer = self._attempt(Plan(), STEPS[name], moment)
        if answer.outcome != DONE:
            raise _not_done(step, answer)
        if not died_before:
            return self._place.dump()
        ends = [
            number
            for number, (verb, path) in enumerate(answer.calls)
            if verb == "create" and path.endswith(died_before) and "/metadata/" not in path
        ]
        if not ends:
            raise NotPossible(f"{name} creates no {died_before}")
        self._place.load(state)
        self._attempt(Plan(ends[-1], KILL_BEFORE), STEPS[name], moment)
        self._place.let_time_pass(_AN_HOUR)
        return self._place.dump()

    # What must hold ---------------------------------------------------------------------------------------------

    def _of_the_process(self, answer: Answer, number: int, fault: str) -> list[str]:
        if (answer.outcome == DIED) != (fault in KILLS and fault != NOTHING):
            return [f"the process {answer.outcome}: {answer.text}"]
        if answer.outcome in ("failed", "hung"):
            return [f"the process {answer.outcome}: {answer.text}"]
        made = answer.calls[number : number + 1]
        if made and not _is_like(made[0], self.calls[number]):
            return [f"call {number} is {made[0]}, undisturbed it was {self.calls[number]}"]
        if answer.outcome != CommitStateUnknownError.__name__:
            return []
        swept = [
            path
            for verb, path in answer.calls[number + 1 :]
            if verb in REMOVALS and not path.startswith(_MAY_GO_AFTERWARDS)
        ]
        return [f"cleaned up although the state is unknown: {swept}"] if swept else []

    def _of_files(self, answer: Answer, sizes: dict[str, int]) -> list[str]:
        gone = [
            path
            for path, size in self._sizes.items()
            if checks.is_data_file(path) and sizes.get(path) != size and path not in self._permitted | self._uncommitted
        ]
        found = [f"committed files are gone or changed: {gone}"] if gone else []
        ending = self._operation.done
        new = [path for path in sizes if path not in self._sizes and "/metadata/" not in path]
        if answer.outcome == DONE and ending is not None and not any(path.endswith(ending) for path in new):
            found.append(f"it returned, and there is no new {ending}")
        return found

    @property
    def _uncommitted(self) -> set[str]:
        """Files of the pending instant: they may go, and come."""
        instant = self._subject.instant
        if self._operation.folds:
            return self._strays
        return {path for path in self._sizes if instant and f"_{instant}" in path.rpartition("/")[2]}

    def _judge(self, sizes: dict[str, int]) -> list[str]:
        """Check the table, go on and check again; the same files lead to the same, so that is done once for each."""
        key = self._key(sizes)
        if key not in self._known:
            lot = hashlib.sha256(repr(key).encode()).digest()[0] % 2 == 1
            undo_first = lot if self.undo_first is None else self.undo_first
            self._known[key] = self._ask(lambda: self._problems(undo_first=undo_first), _AN_HOUR)
        return self._known[key]

    @staticmethod
    def _key(sizes: dict[str, int]) -> tuple[tuple[str, int], ...]:
        return tuple(sorted((_SCRATCH.sub(".tmp", path), size) for path, size in sizes.items()))

    @property
    def states(self) -> int:
        """How many different states trials ended in; each was judged."""
        return len(self._known)

    def _problems(self, *, undo_first: bool) -> list[str]:
        files = files_at(self._place)
        return problems(
            files,
            self._operation,
            self._subject,
            self._before,
            self._place.sizes,
            undo_first=undo_first,
            go_on=lambda: self._place.let_time_pass(_AN_HOUR),
        )

    def _look(self) -> tuple[int, bool, Subject, str]:
        files = files_at(self._place)
        config = open_table(files).config
        subject = subject_of(files, self._operation, self._options)
        return (
            config.version,
            bool(config.metadata_partitions),
            subject,
            checks.rows(files, timeless=self._operation.folds),
        )

    def _list_strays(self) -> list[str]:
        """Return log files that no commit names; up to table version 6 their names do not tell the instant."""
        return strays(open_table(files_at(self._place))._snapshot, list(self._sizes))

    def _ask(self, work: Callable[[], Any], later: float = 0.0) -> Any:
        how, answer = in_a_child(work, self._moment + timedelta(seconds=later), "judge")
        if how != DONE:
            if later:
                return [f"what follows {how}: {answer}"]
            raise Broken(f"{how}: {answer}")
        return answer


def _not_done(what: str, answer: Answer) -> Exception:
    """Return what to raise where an operation, undisturbed, did not end as it must: it was refused, or it failed."""
    kind = NotPossible if answer.outcome in _REFUSALS else Broken
    return kind(f"{what}: {answer.outcome} {answer.text[-1000:]}")


def _kind(call: tuple[str, str]) -> tuple[str, str]:
    return call[0], kind_of(call[1])


def _is_like(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two calls are alike: files of several file groups are looked up in threads, in any order."""
    kinds = [(verb, re.sub(r"^p\d+/|(?<=\.log\.)\d+", "", kind)) for verb, kind in map(_kind, (one, other))]
    return kinds[0] == kinds[1]


def _without_last_commit(state: State) -> State:
    """Return a table whose newest delta commit is back to pending: its completed file is not there."""
    done = re.compile(r"^\.hoodie/(timeline/)?(\d{17})(_\d{17})?\.deltacommit$")
    times = {found[2]: path for path in state.files if (found := done.match(path))}
    newest = max(times, default="")
    if not newest or not any(f"{newest}.deltacommit.inflight" in path for path in state.files):
        raise NotPossible("no delta commit that can be taken back to pending")
    return state.without(times[newest])
