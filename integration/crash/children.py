"""Work in a child of its own that starts warm, and may die."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import random
import secrets
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from hoodie_py.writer.timeline import session

DIED = "died"
HUNG = "hung"
FAILED = "failed"
DONE = "done"

_LONGEST = 240.0


def in_a_child(work: Callable[[], Any], moment: datetime, seed: str) -> tuple[str, Any]:
    """Do work in a forked process with a clock and random numbers of its own, and return how it ended.

    Returns:
        DIED (by SIGKILL), HUNG, FAILED with the traceback, or DONE with what the work returned.
    """
    return Child(work, moment, seed).result()


class Child:
    """A forked process at work.

    Args:
        work: what it does; its answer must be picklable.
        moment: where its clock begins; None for the real time, and real chance.
        seed: of its random numbers.
    """

    def __init__(self, work: Callable[[], Any], moment: datetime | None = None, seed: str = "") -> None:
        self._reader, writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._reader)
            _work(work, moment, seed, writer)
        os.close(writer)

    def result(self) -> tuple[str, Any]:
        """Wait for its end and return how that was, as ``in_a_child`` does."""
        data = _read_all(self._reader)
        os.close(self._reader)
        if data is None:
            os.kill(self._pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        if data is None:
            return HUNG, None
        if status == -signal.SIGKILL:
            return DIED, None
        return pickle.loads(data) if data else (FAILED, f"exit status {status}")


def _work(work: Callable[[], Any], moment: datetime | None, seed: str, writer: int) -> None:
    status = 1
    try:
        gc.disable()
        warnings.simplefilter("ignore")
        if moment is not None:
            set_clock(moment)
            _one_job_after_the_other()
            lot = random.Random(seed)
            vars(secrets)["randbits"] = lot.getrandbits
            vars(os)["urandom"] = lot.randbytes  # of ids of files, which decide the file groups of the metadata table
        try:
            answer = pickle.dumps((DONE, work()))
        except BaseException:
            answer = pickle.dumps((FAILED, traceback.format_exc()[-3000:]))
        view = memoryview(answer)
        while view:
            view = view[os.write(writer, view) :]
        status = 0
    finally:
        sys.stdout.flush()
        os._exit(status)


def _read_all(reader: int) -> bytes | None:
    """Return what the child says until it ends; None if that takes too long."""
    pieces: list[bytes] = []
    deadline = time.monotonic() + _LONGEST
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(reader, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
    return None


def set_clock(moment: datetime) -> None:
    """Give instants times that do not depend on how fast the machine is: a millisecond for each look at the clock."""
    ticks = iter(range(10**9))

    class Ticking(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return (moment + timedelta(milliseconds=next(ticks))).astimezone(tz or UTC)

    vars(session)["datetime"] = Ticking


def _one_job_after_the_other() -> None:
    """Let this package's thread pools do each job where it is handed in: the same storage calls in the same order."""
    plain: Any = ThreadPoolExecutor.submit

    def submit(self: Any, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if not self._thread_name_prefix.startswith("hoodie-"):
            return plain(self, job, *args, **kwargs)
        done: Future[Any] = Future()
        try:
            done.set_result(job(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done

    ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]


@functools.cache
def warm_up() -> None:
    """Import, before the first fork, what children need."""
    import pyarrow.parquet

    from hoodie_py.writer.indexes import metadata_table  # noqa: F401
    from hoodie_py.writer.rollback import rollback  # noqa: F401
    from hoodie_py.writer.services import (
        clean,  # noqa: F401
        compaction,  # noqa: F401
    )

    pyarrow.array([1])
    gc.freeze()


@functools.cache
def warm_up_for_s3() -> None:
    """Do the same for S3, and have botocore's descriptions of services parsed once for all children."""
    import botocore.loaders
    import botocore.session
    import s3fs  # noqa: F401

    plain = botocore.loaders.JSONFileLoader.load_file
    known: dict[str, Any] = {}

    def load_file(self: Any, path: str) -> Any:
        if path not in known:
            known[path] = plain(self, path)
        return known[path]

    botocore.loaders.JSONFileLoader.load_file = load_file
    botocore.session.get_session().get_service_model("s3")
