"""Trying again: a few times, with pauses that grow and differ, and never past a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long.

    Args:
        attempts: calls in all.
        first_pause: longest pause after the first failure, in seconds; it doubles with each one after.
        longest_pause: no pause is longer.
        give_up_after: seconds after the first call began from which no other is made.
    """

    attempts: int = 4
    first_pause: float = 0.2
    longest_pause: float = 5.0
    give_up_after: float = 120.0

    def choose_pause(self, failures: int) -> float:
        """Return a pause in seconds after so many failures: anything up to the limit, so that callers spread out."""
        from random import uniform

        return uniform(0, min(self.longest_pause, self.first_pause * 2 ** (failures - 1)))


def call_with_retries(call: Callable[[], T], policy: RetryPolicy, again: Callable[[Exception], bool]) -> T:
    """Return what the call returns; call again after an exception that ``again`` agrees to, else let it through."""
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
        time.sleep(pause)
