"""A writer that is stopped at a storage call, as a laptop or a virtual machine is, for longer than its lock and its
heartbeat live; meanwhile another takes it for dead.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hoodie_py import HoodieError
from integration.crash.children import DONE, Child
from integration.crash.faults import TIMED, Plan, faulty
from integration.crash.operations import LOCKS, OTHERS, QUICK, Subject
from integration.crash.races import Act
from integration.crash.stores import Place, files_at, open_table

SLEEP = 1.8  # seconds; longer than all of the following
BRIEF = {
    **QUICK,
    "hoodie.client.heartbeat.interval_in_ms": "450",
    "hoodie.client.heartbeat.tolerable.misses": "2",
}
STOPS_LOCKS = {
    "file": {**LOCKS["file"], "hoodie.write.lock.filesystem.expire": "0.02"},
    "object": {
        **LOCKS["object"],
        "hoodie.write.lock.storage.validity.timeout.secs": "1.2",
        "hoodie.write.lock.storage.renew.interval.secs": "0.12",
    },
    "none": {**OTHERS, "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.NoopLockProvider"},
}
"""Locks that end while their holder sleeps, and none at all, as of two machines that share a disk by default locks."""


@dataclass(frozen=True)
class Stopped:
    """How it ended: of the one that slept, and of the other; "done", "nothing to do" or the error's name."""

    sleeper: str
    other: str
    call: str
    text: str = ""


class Stop(Plan):
    """Stops the process before a call."""

    def call(self, verb: str, key: str, act: Callable[[], Any]) -> Any:
        is_timed = threading.current_thread().name in TIMED
        if self.armed and len(self.calls) == self.at and not is_timed and not getattr(self._depth, "inside", False):
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().call(verb, key, act)


def options(lock: str) -> dict[str, str]:
    return {**BRIEF, **STOPS_LOCKS[lock]}


def calls_of(place: Place, act: Act, subject: Subject) -> list[tuple[str, str]]:
    """Do it undisturbed, and return the storage calls of its process."""

    def work() -> list[tuple[str, str]]:
        plan = Stop()
        table = open_table(faulty(files_at(place), plan))
        plan.armed = True
        act(table, subject)
        return plan.calls

    how, answer = Child(work).result()
    assert how == DONE, answer
    found: list[tuple[str, str]] = answer
    return found


def stopped_at(place: Place, act: Act, other: Act, subject: Subject, at: int, call: str) -> Stopped:
    """Stop one process before a call, let the other do its own, and let the first go on."""
    child = Child(lambda: _said(place, act, subject, Stop(at)))
    _, status = os.waitpid(child._pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"it ended before it was stopped at {call}"
    try:
        time.sleep(SLEEP)
        how, others = Child(lambda: _said(place, other, subject, Plan())).result()
    finally:
        os.kill(child._pid, signal.SIGCONT)
    assert how == DONE, others
    how, answer = child.result()
    assert how == DONE, answer
    return Stopped(answer[0], others[0], call, answer[1])


def _said(place: Place, act: Act, subject: Subject, plan: Plan) -> tuple[str, str]:
    table = open_table(faulty(files_at(place), plan))
    plan.armed = True
    try:
        return ("done" if act(table, subject) else "nothing to do"), ""
    except HoodieError as error:
        return type(error).__name__, f"{error} {getattr(error, '__notes__', '')}"
