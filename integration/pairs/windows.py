"""Where an operation is stopped: between the blocks in which it holds the table's lock, inside of them, between reads.

A process that is to be stopped says at its window that it has come there, and waits until it is told to go on. While it
holds the lock nobody else can begin, so the other one is let go on until it asks for the lock, and the first then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hoodie_py.writer.timeline import session
from integration.crash.faults import REMOVALS, WRITES, Plan
from integration.crash.stores import HEARTBEATS, LOCK_FILE, LOCK_OBJECT

OPENED = "opened"
LOOKED = "looked"
BEGINNING = "beginning"
PLANNED = "planned"
BEGAN = "began"
WORKED = "worked"
TELLING = "telling"
AMID = "amid"
COMPLETING = "completing"
DONE = "done"
EARLY, LATE = "read a third", "read two thirds"
WINDOWS = (OPENED, LOOKED, BEGINNING, PLANNED, BEGAN, WORKED, TELLING, AMID, COMPLETING, DONE, EARLY, LATE)
LOCKED = (BEGINNING, TELLING, AMID, COMPLETING)
"""Windows in which the lock is held."""

Place = tuple[str, int, int]
"""What is about to be done or has been: "ask" for the lock, "write" in a block, "release" the lock, "read"; in which
block, and which write of it or which call."""

_ASIDE = (HEARTBEATS, LOCK_FILE, LOCK_OBJECT, ".hoodie/.lock.crc")
_LONG = 3
_THREADS = ("hoodie-heartbeat", "hoodie-lock")


@dataclass(frozen=True, slots=True)
class Trace:
    """What an operation did undisturbed: how many calls, and how many writing ones while it held the lock each time."""

    calls: int
    blocks: tuple[int, ...]

    def windows(self) -> tuple[str, ...]:
        """Return the windows that the operation has."""
        if not self.blocks:
            return (OPENED, EARLY, LATE)
        found = [OPENED, LOOKED]
        if len(self.blocks) > 1:
            planned = [PLANNED] if len(self.blocks) > 2 else []
            found += [*([BEGINNING] if self.blocks[0] else []), *planned, BEGAN, WORKED]
        if self.blocks[self.last]:
            found += [*([TELLING] if self.blocks[self.last] > 1 else []), COMPLETING]
        found += [AMID] if self.blocks[self.longest] > _LONG else []
        return (*found, DONE)

    @property
    def last(self) -> int:
        """The last block that writes anything."""
        return max((at for at, count in enumerate(self.blocks) if count), default=0)

    @property
    def longest(self) -> int:
        """The block that writes most."""
        return self.blocks.index(max(self.blocks))

    def place_of(self, window: str) -> Place | None:
        """Return where a window is; None if the operation has it not."""
        if window not in self.windows() or window == OPENED:
            return None
        if not self.blocks:
            return "read", 0, self.calls // 3 if window == EARLY else 2 * self.calls // 3
        blocks, last, longest = self.blocks, self.last, self.longest
        places: dict[str, Place] = {
            LOOKED: ("ask", 0, 0),
            BEGINNING: ("write", 0, blocks[0] - 1),
            PLANNED: ("release", 1, 0),
            BEGAN: ("release", len(blocks) - 1, 0),
            WORKED: ("ask", len(blocks) - 1, 0),
            TELLING: ("write", last, 0),
            AMID: ("write", longest, blocks[longest] // 2),
            COMPLETING: ("write", last, blocks[last] - 1),
            DONE: ("release", len(blocks), 0),
        }
        return places[window]


class Gate(Plan):
    """Watches an operation's storage calls and its holds of the lock, and stops it at a window.

    Args:
        reached: file descriptor to say so on; None to stop nowhere.
        go_on: file descriptor that a byte comes on once it is to go on.
        window: where.
        trace: of the operation undisturbed.
        resumed: called after the stop.
        asks: file descriptor to say on that the lock is asked for.
    """

    def __init__(
        self,
        reached: int | None = None,
        go_on: int | None = None,
        window: str = "",
        trace: Trace | None = None,
        resumed: Callable[[], None] = lambda: None,
        asks: int | None = None,
    ) -> None:
        super().__init__()
        self.window = window
        self._reached, self._go_on, self._resumed, self._asks = reached, go_on, resumed, asks
        self._place = None if trace is None else trace.place_of(window)
        self._blocks: list[int] = []
        self._holding = False

    @property
    def trace(self) -> Trace:
        """What has been done so far."""
        return Trace(len(self.calls), tuple(self._blocks))

    def call(self, verb: str, key: str, act: Callable[[], Any]) -> Any:
        """Make a call, perhaps after a stop."""
        if threading.current_thread().name in _THREADS or getattr(self._depth, "inside", False):
            return act()
        path = key.removeprefix(self.root).lstrip("/")
        if self.armed and not path.startswith(_ASIDE):
            self._look_at_call(writes=verb in WRITES or verb in REMOVALS)
        return super().call(verb, key, act)

    def _look_at_call(self, *, writes: bool) -> None:
        if self._holding:
            if writes:
                self._come_to("write", len(self._blocks) - 1, self._blocks[-1])
                self._blocks[-1] += 1
        elif not self._blocks:
            self._come_to("read", 0, len(self.calls))

    def _come_to(self, *place: str | int) -> None:
        """Stop here if this is the window."""
        if place == self._place:
            self.stop()

    def stop(self) -> None:
        """Say that the window is reached, and wait; once."""
        if self._reached is None or self._go_on is None:
            return
        reached, self._reached = self._reached, None
        os.write(reached, b"!")
        os.read(self._go_on, 1)
        self._resumed()

    def watch_lock(self) -> None:
        """Watch this process's holds of the lock from now on."""
        plain = session.hold

        @contextmanager
        def hold(*arguments: Any) -> Iterator[Any]:
            self._before_lock()
            with plain(*arguments) as held:
                self._blocks.append(0)
                self._holding = True
                try:
                    yield held
                finally:
                    self._holding = False
            self._after_lock()

        vars(session)["hold"] = hold

    def _before_lock(self) -> None:
        if not self.armed:
            return
        if self._asks is not None:
            os.write(self._asks, b"?")
            self._asks = None
        self._come_to("ask", len(self._blocks), 0)

    def _after_lock(self) -> None:
        self._come_to("release", len(self._blocks), 0)
