"""Retries: a few attempts, with growing random pauses, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to retry, and how long; times are in seconds."""

    attempts: int = 4  # number of calls, with the first one
    first_pause: float = 0.2  # longest pause after the first failure; it doubles with each failure
    longest_pause: float = 5.0
    give_up_after: float = 120.0  # after the start of the first call; from then on no retry is made

    def choose_pause(self, failures: int) -> float:
        """Return a pause in seconds after ``failures`` failures: random, so that callers do not retry at once."""
        from random import uniform

        return uniform(0, min(self.longest_pause, self.first_pause * 2 ** (failures - 1)))


_listeners: list[Callable[[str], object]] = []


def watch_retries(tell: Callable[[str], object]) -> None:
    """Register a function that is called with the name of each error after which a request is made again."""
    _listeners.append(tell)


def call_with_retries(call: Callable[[], T], policy: RetryPolicy, again: Callable[[Exception], bool]) -> T:
    """Return the result of a call; retry after an exception for which ``again`` is true, and raise every other one."""
    began = time.monotonic()
    failures = 0
    while True:
        try:
            return call()
        except Exception as error:
            failures += 1
            pause = policy.choose_pause(failures)
            late = time.monotonic() + pause - began > policy.give_up_after
            if failures >= policy.attempts or late or not again(error):
                raise
            _tell(error, failures + 1, pause)
        time.sleep(pause)


def _tell(error: Exception, attempt: int, pause: float) -> None:
    import logging  # imported here, since it would slow down the start of every command

    # Only the kind of the error: messages of stores may contain credentials.
    text = "A request failed (%s); attempt %d follows in %.1f s"
    logging.getLogger(__name__).info(text, type(error).__name__, attempt, pause)
    for tell in _listeners:
        tell(type(error).__name__)
