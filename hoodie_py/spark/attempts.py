"""Runs work in Spark tasks: sends it to workers, and returns results and errors to the driver.

An error that a retry cannot fix is returned as a result and does not fail the Spark task. So the driver raises it with
its type, and Spark does not run the task four times.
"""

from __future__ import annotations

import pickle
import re
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from hoodie_py.arrow.arrays import from_texts
from hoodie_py.errors import HoodieError, StorageError
from hoodie_py.spark.process import freeze_imports

OUTCOME = pa.schema([("done", pa.binary()), ("failed", pa.binary())])
"""The row that a task returns: its pickled result, or its pickled error."""

_LOCAL = re.compile(r"local(?:\[[^,\]]*(?:,\s*(\d+)\s*)?\])?")
_FAILURES = 4  # Spark's default of spark.task.maxFailures


def pack(value: object) -> bytes:
    """Pickle and compress a value; the pickle holds objects that occur several times only once."""
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def unpack(packed: bytes) -> Any:
    """Return the value that ``pack`` packed."""
    return pickle.loads(zlib.decompress(packed))  # noqa: S301 - this session's driver made it


@lru_cache(maxsize=2)
def unpack_once(packed: bytes) -> Any:
    """Unpack a value once per worker, so that its tasks share the objects."""
    return unpack(packed)


def iterate_numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """Yield the numbers in a one-column DataFrame, whose rows stand for pieces of work."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def make_numbers(spark: Any, count: int) -> Any:
    """Return a DataFrame of the numbers below ``count``, each in its own partition and so its own task."""
    return spark.range(0, count, 1, max(1, count))


def count_tries(spark: Any) -> int:
    """Return how often Spark tries a task that fails."""
    # In local mode only the master URL says it (``local[2, 4]``), whatever spark.task.maxFailures is.
    local = _LOCAL.fullmatch(spark.conf.get("spark.master", None) or "")
    if local is not None:
        return int(local.group(1) or 1)
    text = spark.conf.get("spark.task.maxFailures", None) or ""
    return int(text) if text.isdecimal() else _FAILURES


def can_retry(error: HoodieError, attempts: int) -> bool:
    """Whether a retry may help (for example, the store failed), and Spark will run the task again.

    ``attempts``: how often Spark tries a task that fails.
    """
    context = TaskContext.get()
    tried = 0 if context is None else context.attemptNumber()
    return isinstance(error, StorageError) and not error.missing and tried + 1 < attempts


def run_for_outcome(run: Callable[[], object], attempts: int) -> pa.RecordBatch:
    """Run a task on a worker and return its outcome.

    ``attempts``: how often Spark tries a task that fails.

    Raises:
        HoodieError: the task failed, and Spark retries it, perhaps on another machine.
    """
    try:
        result = run()
    except HoodieError as error:
        if can_retry(error, attempts):
            raise
        return pack_failure(error)
    return pack_result(result)


def run_step(
    batches: Iterator[pa.RecordBatch], attempts: int, make_failure: Callable[[HoodieError], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a step on a worker; an error becomes a last batch.

    ``attempts``: how often Spark tries a task that fails. ``make_failure``: makes the batch of an error.

    Raises:
        HoodieError: the step failed, and Spark retries it, perhaps on another machine.
    """
    pa.set_cpu_count(1)  # Spark gives a task one core
    try:
        yield from batches
    except HoodieError as error:
        if can_retry(error, attempts):
            raise
        yield make_failure(error)
    freeze_imports()


def pack_result(result: object) -> pa.RecordBatch:
    """Return a task's result as its outcome."""
    return _make_outcome(pickle.dumps(result), None)


def pack_failure(error: HoodieError) -> pa.RecordBatch:
    """Return the error that is being handled as the task's outcome."""
    return _make_outcome(None, pack_error(error))


def unpack_outcome(outcome: Any) -> Any:
    """Return a task's result from its outcome, a Spark row.

    Raises:
        HoodieError: the error of the task.
    """
    if outcome["failed"] is not None:
        raise unpack_error(bytes(outcome["failed"]))
    return pickle.loads(bytes(outcome["done"]))  # noqa: S301 - this session's workers made it


def _make_outcome(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([from_texts([value], pa.binary()) for value in values], schema=OUTCOME)


def pack_error(error: HoodieError) -> bytes:
    """Pickle the error that is being handled and its traceback; values that may not be picklable become text."""
    where = {name: value if isinstance(value, str | int) else str(value) for name, value in error.where.items()}
    bare = type(error)(error.message, hint=error.hint, **where)
    return pickle.dumps((bare, traceback.format_exc()))


def unpack_error(packed: bytes) -> HoodieError:
    """Return an error that a worker packed, with the worker's traceback as a note."""
    error, trace = pickle.loads(packed)  # noqa: S301 - this session's workers made it
    assert isinstance(error, HoodieError)
    error.add_note(f"On a Spark worker:\n{trace}")
    return error


@contextmanager
def run_job(spark: Any, tag: str, what: str) -> Iterator[None]:
    """Tag the Spark job that the block runs, and report its failure; ``what`` names the job in the error.

    Raises:
        HoodieError: Spark failed.
    """
    spark.addTag(tag)
    try:
        yield
    except Exception as error:
        raise HoodieError(
            f"Spark did not carry out the {what}: {summarize_error(error)}",
            hint="The table is as it was. What Spark reported in full is the cause of this error.",
        ) from error
    finally:
        spark.removeTag(tag)


def summarize_error(error: Exception) -> str:
    """Return the line of a Spark error that says what happened; if Python failed, the last line of its traceback."""
    find_trace = getattr(error, "getStackTrace", None)
    trace = find_trace() if find_trace is not None else None  # over Connect the text of the error is without it
    lines = [line.strip() for line in f"{error}\n{trace or ''}".splitlines() if line.strip()]
    python = next((at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line), None)
    if python is None:
        return lines[0] if lines else type(error).__name__
    named = (line for line in lines[python + 1 :] if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit)\b", line))
    return next(named, lines[-1])
