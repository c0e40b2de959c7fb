"""Lets the time of Spark's Python workers count when they have ended.

Python runs this at the start of every process that has the folder on its path. Spark's Python daemon ignores the ends
of its workers, and the kernel then forgets the time that they took; here it waits for them instead, which adds their
time to its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_set_handler = signal.signal


def _wait_for_all(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _signal(number: int, handler: Callable[..., Any] | int | signal.Handlers | None) -> Any:
    ignored = number == signal.SIGCHLD and handler == signal.SIG_IGN
    return _set_handler(number, _wait_for_all if ignored else handler)


signal.signal = _signal  # type: ignore[assignment]
