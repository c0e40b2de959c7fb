"""Trials: one operation stops in a window, another one runs whole meanwhile, the first goes on; then the judge."""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import select
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

import hoodie_py
from hoodie_py import HoodieError
from integration.crash.children import DONE, Child, in_a_child, set_clock, warm_up
from integration.crash.faults import faulty
from integration.crash.stores import HEARTBEATS, LOCK_FILE, LOCK_OBJECT, Place, files_at, open_table
from integration.pairs.judge import Answer, Verdict, allowed_rows, judge, problems_of_answers
from integration.pairs.operations import FIRST, SECOND, Operation, Turn
from integration.pairs.tables import LOCK_OF, MOMENT, Kind, Prepared, Rows, options_of
from integration.pairs.windows import LOCKED, OPENED, Gate, Trace

_GO = b"!"
_LONGEST = 60.0  # seconds
_OTHER_BEGINS, _GOES_ON, _JUDGED = timedelta(seconds=5), timedelta(seconds=10), timedelta(minutes=10)
_NOT_NEEDED = ("hoodie_py.spark", "hoodie_py.cli", "hoodie_py.testing", "hoodie_py.metastore", "hoodie_py.catalog")
_ASIDE = (HEARTBEATS, LOCK_FILE, LOCK_OBJECT)


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial and what came of it."""

    kind: str
    store: str
    first: str
    window: str
    second: str
    answers: tuple[str, str]
    texts: tuple[str, str]
    problems: tuple[str, ...]
    lock: str = LOCK_OF["local"]

    @property
    def place(self) -> tuple[str, ...]:
        """What tells one trial from another."""
        return self.kind, self.store, self.first, self.window, self.second, self.lock

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Meeting:
    """What two operations said that met; whether the first came to its window; whether one ended in a raw error."""

    answers: tuple[Answer, Answer]
    stopped: bool
    broken: bool


@dataclass
class Bench:
    """A place on a store that tables are tried at; what was judged once is not judged again. ``refused`` says which
    operations some kinds of tables refuse, and why.
    """

    place: Place
    lock: str = ""
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    _traces: dict[tuple[Kind, str], Trace | None] = field(default_factory=dict)
    _verdicts: dict[bytes, Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lock = self.lock or LOCK_OF[self.place.store]

    @property
    def states(self) -> int:
        """How many different ends were judged."""
        return len(self._verdicts)

    def trace(self, prepared: Prepared, operation: Operation) -> Trace | None:
        """Do an operation undisturbed and return what it did; None where it is refused."""
        key = (prepared.kind, operation.name)
        if key not in self._traces:
            self._load(prepared)
            work = self._first(prepared, operation, Gate())
            how, answer = in_a_child(work, MOMENT, f"{prepared.kind} {FIRST}")
            assert how == DONE, answer
            self._traces[key] = None if answer[0].refused else answer[1]
            if answer[0].refused:
                self.refused[str(prepared.kind), operation.name] = answer[0].text
        return self._traces[key]

    def windows(self, prepared: Prepared, operation: Operation) -> tuple[str, ...]:
        """Return where an operation can be stopped."""
        trace = self.trace(prepared, operation)
        return () if trace is None else trace.windows()

    def trial(self, prepared: Prepared, first: Operation, window: str, second: Operation) -> Trial:
        """Stop the first operation in a window, do the second, let the first go on, and judge."""
        met = self.meet(prepared, first, window, second)
        found = [] if met.stopped else ["it did not come to the window"]
        if met.broken:
            found.append("an error that is not one of ours")
        else:
            turns = (Turn(prepared, FIRST, {}), Turn(prepared, SECOND, {}))
            found += problems_of_answers((first, second), turns, met.answers, window)
            verdict = self._judge(prepared)
            allowed = allowed_rows((first, second), turns, met.answers)
            if verdict.rows not in allowed:
                found.append(f"the rows are {_differ(verdict.rows, allowed)}")
            found += verdict.problems
        outcomes = (met.answers[0].outcome, met.answers[1].outcome)
        texts = (met.answers[0].text, met.answers[1].text)
        return Trial(
            str(prepared.kind),
            self.place.store,
            first.name,
            window,
            second.name,
            outcomes,
            texts,
            tuple(found),
            self.lock,
        )

    def meet(self, prepared: Prepared, first: Operation, window: str, second: Operation) -> Meeting:
        """Let two operations meet, and leave the table as they leave it."""
        trace = self.trace(prepared, first)
        self._load(prepared)
        reached, go_on = os.pipe(), os.pipe()
        gate = Gate(reached[1], go_on[0], window, trace, lambda: set_clock(MOMENT + _GOES_ON))
        one = Child(self._first(prepared, first, gate), MOMENT, f"{prepared.kind} {FIRST}")
        os.close(reached[1])
        asks = os.pipe()  # after the fork: that it is closed must tell of the second process alone
        try:
            stopped = _wait(reached[0])
            other = Child(self._second(prepared, second, asks[1]), MOMENT + _OTHER_BEGINS, f"{prepared.kind} {SECOND}")
            os.close(asks[1])
            if window in LOCKED:
                _wait(asks[0])  # until it asks for the lock, or ends without
                os.write(go_on[1], _GO)
                how_other, answer_other = other.result()
            else:
                how_other, answer_other = other.result()
                os.write(go_on[1], _GO)
            how, answer = one.result()
        finally:
            for each in (reached[0], *go_on, asks[0]):
                os.close(each)
        answers = (
            answer[0] if how == DONE else Answer(how, str(answer)),
            answer_other if how_other == DONE else Answer(how_other, str(answer_other)),
        )
        return Meeting(answers, stopped, broken=how != DONE or how_other != DONE)

    def _load(self, prepared: Prepared) -> None:
        self.place.load(prepared.state)
        self.place.let_time_pass(3600)

    def _first(self, prepared: Prepared, operation: Operation, gate: Gate) -> Callable[[], tuple[Answer, Trace]]:
        options = options_of(self.lock)

        def work() -> tuple[Answer, Trace]:
            gate.watch_lock()
            table = open_table(faulty(files_at(self.place), gate))
            gate.armed = True
            if gate.window == OPENED:
                gate.stop()
            answer = _answer(lambda: operation.act(table, Turn(prepared, FIRST, options)))
            return answer, gate.trace

        return work

    def _second(self, prepared: Prepared, operation: Operation, asks: int) -> Callable[[], Answer]:
        options = options_of(self.lock)

        def work() -> Answer:
            gate = Gate(asks=asks)
            gate.watch_lock()
            gate.armed = True
            return _answer(lambda: operation.act(open_table(files_at(self.place)), Turn(prepared, SECOND, options)))

        return work

    def _judge(self, prepared: Prepared) -> Verdict:
        self.place.let_time_pass(3600)
        state = self.place.dump()
        lot = hashlib.sha256(str(prepared.kind).encode())
        for path in sorted(state.files):
            if not path.startswith(_ASIDE):
                lot.update(f"{path} {len(state.files[path])} ".encode() + state.files[path])
        key = lot.digest()
        if key not in self._verdicts:
            how, answer = in_a_child(
                lambda: judge(self.place, options_of(self.lock), twice=key[0] < 64), MOMENT + _JUDGED, "judge"
            )
            self._verdicts[key] = answer if how == DONE else Verdict({}, (f"the judge {how}: {answer}",))
        return self._verdicts[key]


@cache
def warm_up_all() -> None:
    """Import, before the first fork, all that any child may need: most of a child's time is that otherwise."""
    for module in pkgutil.walk_packages(hoodie_py.__path__, "hoodie_py."):
        if not module.name.startswith(_NOT_NEEDED) and "__main__" not in module.name:
            with suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    warm_up()


def _answer(act: Callable[[], Any]) -> Answer:
    try:
        found = act()
    except HoodieError as error:
        kinds = frozenset(each.__name__ for each in type(error).__mro__)
        return Answer(type(error).__name__, f"{error} {getattr(error, '__notes__', '')}", kinds=kinds)
    return Answer("done", "", found if isinstance(found, dict | list) else None)


def _wait(reader: int) -> bool:
    """Wait for a byte; False where the other end is closed without one."""
    if not select.select([reader], [], [], _LONGEST)[0]:
        raise TimeoutError("a process neither came to its window nor ended")
    return bool(os.read(reader, 1))


def _differ(rows: Rows, allowed: list[Rows]) -> str:
    """Return how rows differ from each of those that are allowed."""
    said = []
    for expected in allowed:
        missing = {place: row for place, row in expected.items() if rows.get(place) != row}
        more = {place: row for place, row in rows.items() if expected.get(place) != row}
        said.append(f"not {missing} but {more}")
    return "; nor ".join(said)
