"""Spark runs a task again, or gives up: which errors are worth another try, and how the others get to the driver.

An error that another try cannot mend comes back as a result instead of failing the Spark task, so it keeps its type and
is not tried four times.
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
"""What a task answers: its result, or the error that it ended with."""

_LOCAL = re.compile(r"local(?:\[[^,\]]*(?:,\s*(\d+)\s*)?\])?")
_FAILURES = 4  # Spark's default of spark.task.maxFailures


def count_tries(spark: Any) -> int:
    """Return how often Spark tries a task: in local mode only the master says so."""
    local = _LOCAL.fullmatch(spark.conf.get("spark.master", None) or "")
    if local is not None:
        return int(local.group(1) or 1)
    text = spark.conf.get("spark.task.maxFailures", None) or ""
    return int(text) if text.isdecimal() else _FAILURES


def can_retry(error: HoodieError, attempts: int) -> bool:
    """Whether an error may be of one machine or one moment, and Spark tries the task again.

    Args:
        error: what the task on this worker raised.
        attempts: how often Spark tries a task.
    """
    context = TaskContext.get()
    tried = 0 if context is None else context.attemptNumber()
    return isinstance(error, StorageError) and not error.missing and tried + 1 < attempts


def pack_result(result: object) -> pa.RecordBatch:
    """Return what a task made as its outcome."""
    return _make_outcome(pickle.dumps(result), None)


def pack_failure(error: HoodieError) -> pa.RecordBatch:
    """Return the error that is being handled as a task's outcome."""
    return _make_outcome(None, pack_error(error))


def unpack_outcome(outcome: Any) -> Any:
    """Return what a task made, given its outcome as Spark's row.

    Raises:
        HoodieError: what the task ended with.
    """
    if outcome["failed"] is not None:
        raise unpack_error(bytes(outcome["failed"]))
    return pickle.loads(bytes(outcome["done"]))  # noqa: S301 - this session's workers made it


def _make_outcome(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([from_texts([value], pa.binary()) for value in values], schema=OUTCOME)


def pack_error(error: HoodieError) -> bytes:
    """Pack the error that is being handled, with nothing in it that could not be pickled, and its traceback."""
    where = {name: value if isinstance(value, str | int) else str(value) for name, value in error.where.items()}
    bare = type(error)(error.message, hint=error.hint, **where)
    return pickle.dumps((bare, traceback.format_exc()))


def unpack_error(packed: bytes) -> HoodieError:
    """Return an error that a worker packed."""
    error, trace = pickle.loads(packed)  # noqa: S301 - this session's workers made it
    assert isinstance(error, HoodieError)
    error.add_note(f"On a Spark worker:\n{trace}")
    return error


def summarize_error(error: Exception) -> str:
    """Return the line of a Spark error that says what happened: where Python failed, the end of its traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    python = next((at for at, line in enumerate(lines) if line.startswith("Traceback ")), None)
    if python is None:
        return lines[0] if lines else type(error).__name__
    named = (line for line in lines[python:] if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit)\b", line))
    return next(named, lines[-1])
