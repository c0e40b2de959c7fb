"""Processes that are at one table at once, each delayed at random at its storage calls."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from hoodie_py import ConflictError, HoodieError, HoodieTable, InvalidQueryError
from integration.crash.children import DONE, Child
from integration.crash.faults import Plan, faulty
from integration.crash.operations import Subject
from integration.crash.stores import Place, files_at, open_table

LOST = {ConflictError.__name__, InvalidQueryError.__name__}  # the latter: what was to be run or undone is gone

Act = Callable[[HoodieTable, Subject], Any]


class Slow(Plan):
    """Waits now and then."""

    def call(self, verb: str, key: str, act: Callable[[], Any]) -> Any:
        time.sleep(random.choice((0, 0, 0, 0.001, 0.004)))
        return act()


def asked(work: Callable[[], Any]) -> Any:
    """Do it in a process of its own, so that this one can be forked."""
    how, answer = Child(work).result()
    assert how == DONE, answer
    return answer


def race(place: Place, acts: list[Act], subject: Subject, seed: int) -> list[str]:
    """Let each process do its own at once, and return how it ended: "done", "nothing to do" or the error's name."""

    def work(act: Act, number: int) -> Callable[[], str]:
        def begin() -> str:
            random.seed(f"{seed}/{number}")
            files = faulty(files_at(place), Slow())
            time.sleep(random.random() * 0.03)
            try:
                return "done" if act(open_table(files), subject) else "nothing to do"
            except HoodieError as error:
                return type(error).__name__

        return begin

    children = [Child(work(act, number)) for number, act in enumerate(acts)]
    ends = [child.result() for child in children]
    assert [how for how, _ in ends] == [DONE] * len(acts), ends
    return [answer for _, answer in ends]
