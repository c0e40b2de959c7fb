"""Errors of Spark tasks: which of them Spark retries, and how the others reach the driver.

An error that a retry cannot mend comes back as a result and does not fail the Spark task. So the driver raises it with
its type, and Spark does not run the task four times.
"""

from __future__ import annotations

import pickle
import re
import traceback
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from hoodie_py.errors import HoodieError, StorageError
from hoodie_py.formats.arrays import from_texts

OUTCOME = pa.schema([("done", pa.binary()), ("failed", pa.binary())])
"""The row that a task returns: its pickled result, or its pickled error."""

_LOCAL = re.compile(r"local(?:\[[^,\]]*(?:,\s*(\d+)\s*)?\])?")
_FAILURES = 4  # Spark's default of spark.task.maxFailures


def count_tries(spark: Any) -> int:
    """Return how often Spark runs a task that fails. In local mode only the master URL says so (``local[2, 4]``)."""
    local = _LOCAL.fullmatch(spark.conf.get("spark.master", None) or "")
    if local is not None:
        return int(local.group(1) or 1)
    text = spark.conf.get("spark.task.maxFailures", None) or ""
    return int(text) if text.isdecimal() else _FAILURES


def can_retry(error: HoodieError, attempts: int) -> bool:
    """Whether a retry may help (the store failed, say), and Spark will run the task again.

    Args:
        error: the error that the task on this worker raised.
        attempts: how often Spark runs a task that fails.
    """
    context = TaskContext.get()
    tried = 0 if context is None else context.attemptNumber()
    return isinstance(error, StorageError) and not error.missing and tried + 1 < attempts


def pack_result(result: object) -> pa.RecordBatch:
    """Return a task's result as its outcome."""
    return _make_outcome(pickle.dumps(result), None)


def pack_failure(error: HoodieError) -> pa.RecordBatch:
    """Return the error that is being handled as the task's outcome."""
    return _make_outcome(None, pack_error(error))


def unpack_outcome(outcome: Any) -> Any:
    """Return a task's result from its outcome, a row of Spark's.

    Raises:
        HoodieError: the error of the task.
    """
    if outcome["failed"] is not None:
        raise unpack_error(bytes(outcome["failed"]))
    return pickle.loads(bytes(outcome["done"]))  # noqa: S301 - this session's workers made it


def _make_outcome(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([from_texts([value], pa.binary()) for value in values], schema=OUTCOME)


def pack_error(error: HoodieError) -> bytes:
    """Pickle the error that is being handled and its traceback; values that may not be picklable become texts."""
    where = {name: value if isinstance(value, str | int) else str(value) for name, value in error.where.items()}
    bare = type(error)(error.message, hint=error.hint, **where)
    return pickle.dumps((bare, traceback.format_exc()))


def unpack_error(packed: bytes) -> HoodieError:
    """Return an error that a worker packed; the worker's traceback is a note of it."""
    error, trace = pickle.loads(packed)  # noqa: S301 - this session's workers made it
    assert isinstance(error, HoodieError)
    error.add_note(f"On a Spark worker:\n{trace}")
    return error


def summarize_error(error: Exception) -> str:
    """Return the line of a Spark error that says what happened; if Python failed, the last line of its traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = next((at for at, line in enumerate(lines) if line.startswith("Traceback ")), None)
    if python is None:
        return lines[0] if lines else type(error).__name__
    named = (line for line in lines[python:] if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit)\b", line))
    return next(named, lines[-1])
