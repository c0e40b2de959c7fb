"""Reads several slices at the same time, on threads of this process.

Arrow and NumPy release Python's lock while they work, so two threads keep two cores busy. Only one thread at a time
folds a log (``runtime.fold_gate``).

Batches wait in a queue with room for a few. A thread that finds no room waits, so memory stays bounded even if the
caller is slow. Batches are returned as they become ready, each with the number of its slice.

A caller that stops early (a limit, ``break``, an error, Ctrl-C) closes the queue: the threads end at their next batch
or log block, and the caller waits for them.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from contextvars import copy_context

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.read import READ_THREADS
from hoodie_py.runtime.fold_gate import FoldGate, ScanGivenUpError
from hoodie_py.runtime.machine import count_cores

_VARIABLE = "HOODIE_PY_READ_THREADS"
_WAITING = 1  # batches of each thread

Batches = Callable[[], Generator[pa.RecordBatch, None, None]]
Numbered = tuple[int, pa.RecordBatch]


def count_threads(options: Mapping[str, str]) -> int:
    """Return how many slices to read at once: the option's value, or HOODIE_PY_READ_THREADS, or else one per core.

    Counts the cores that this process may use (CPU affinity, cgroup quota), and at most ``pyarrow.cpu_count()``.

    Raises:
        InvalidQueryError: the option or the variable is not a positive number.
    """
    given = READ_THREADS.read_given(options)
    if given is not None:
        return given
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return max(1, min(int(pa.cpu_count()), count_cores()))
    if not text.isdecimal() or not 0 < int(text) <= READ_THREADS.most:
        raise InvalidQueryError(
            f"{text!r} is no number of threads.",
            hint=f"Set {READ_THREADS} or {_VARIABLE} from 1 to {READ_THREADS.most}.",
        )
    return int(text)


def read_in_threads(
    slices: Sequence[Batches], threads: int, gate: FoldGate | None = None
) -> Generator[Numbered, None, None]:
    """Yield the batches of slices with the number of their slice, in any order.

    Each function starts to read a slice. The functions enter ``gate`` to fold their logs; it is closed when reading
    ends.

    Raises:
        InvalidQueryError: the iterator is used in a forked process.
        Exception: reading a slice failed; the other slices are abandoned.
    """
    queue = _Queue(_WAITING * threads)
    work = iter(list(enumerate(slices)))
    lock = threading.Lock()

    def run() -> None:
        try:
            while True:
                with lock:
                    number, start = next(work, (-1, None))
                if start is None or not _read_slice(number, start, queue):
                    return
        except ScanGivenUpError:
            return
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            queue.fail(error)
        finally:
            queue.remove_thread()

    workers = [
        # In the caller's context, so that spans are children of the caller's.
        threading.Thread(target=copy_context().run, args=(run,), name=f"hoodie-read-{i}", daemon=True)
        for i in range(min(threads, len(slices)))
    ]
    try:
        for worker in workers:
            queue.add_thread()
            worker.start()
        yield from queue.take_batches()
    finally:
        queue.close()
        if gate is not None:
            gate.give_up()
        # A fork has only a copy of the queue, and none of the threads.
        if queue.is_own:
            _wait_for(workers)


def _wait_for(workers: Sequence[threading.Thread]) -> None:
    """Wait until threads have ended, except from one of them, in which Python may close a forgotten iterator."""
    if threading.current_thread() not in workers:
        for worker in workers:
            if worker.ident is not None:
                worker.join()


def _read_slice(number: int, start: Batches, queue: _Queue) -> bool:
    """Read one slice; return whether more slices are wanted."""
    with closing(start()) as batches:
        for batch in batches:
            if not queue.put((number, batch)):
                return False
            del batch  # no reference while the next one is read
    return not queue.closed


class _Queue:
    """Passes batches from several threads to one reader."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._waiting: deque[Numbered] = deque()
        self._changed = threading.Condition()
        self._working = 0
        self._error: BaseException | None = None
        self._process = os.getpid()
        self.closed = False

    @property
    def is_own(self) -> bool:
        """Whether the threads belong to this process."""
        return self._process == os.getpid()

    def add_thread(self) -> None:
        """Count a thread that is about to start."""
        self._working += 1

    def remove_thread(self) -> None:
        """Count a thread that ends."""
        with self._changed:
            self._working -= 1
            self._changed.notify_all()

    def put(self, batch: Numbered) -> bool:
        """Pass on a batch when there is room; False if no more batches are wanted."""
        with self._changed:
            while len(self._waiting) >= self._room and not self.closed:
                self._changed.wait()
            if not self.closed:
                self._waiting.append(batch)
                self._changed.notify_all()
            return not self.closed

    def fail(self, error: BaseException) -> None:
        """Pass on an error; the first one counts."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def close(self) -> None:
        """Make every thread end at its next batch."""
        # After a fork, a thread that does not exist here may hold the lock.
        if self.is_own:
            with self._changed:
                self.closed = True
                self._waiting.clear()
                self._changed.notify_all()

    def take_batches(self) -> Iterator[Numbered]:
        """Yield batches until all threads have ended, or raise a thread's error."""
        return iter(self._take, None)  # a loop would hold each batch in a variable while the caller uses it

    def _take(self) -> Numbered | None:
        # A fork has no threads of its parent: it would wait forever.
        if not self.is_own:
            raise InvalidQueryError(
                "A scan cannot go on in a forked process.", hint="Start it anew there, or read with one thread."
            )
        with self._changed:
            while not self._waiting and self._working and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            self._changed.notify_all()
            return self._waiting.popleft() if self._waiting else None
