"""What is told of an error of Spark."""

from __future__ import annotations

import pytest

from hoodie_py.spark.attempts import summarize_error

PYTHON = """An exception was thrown from the Python worker: Traceback (most recent call last):
  File "worker.py", line 1, in main
ZeroDivisionError: one over nothing
\tat org.apache.spark.api.python.PythonRunner.read(PythonRunner.scala:1)
org.apache.spark.SparkException: Job aborted"""


class ConnectError(Exception):
    """Over Connect, the trace is apart from the text."""

    def getStackTrace(self) -> str | None:
        return f"org.apache.spark.api.python.PythonException: {PYTHON}"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError(PYTHON), "ZeroDivisionError: one over nothing"),
        (ConnectError("Please see the stack trace below."), "ZeroDivisionError: one over nothing"),
        (RuntimeError("Job aborted\n\tat org.apache.spark"), "Job aborted"),
        (RuntimeError(), "RuntimeError"),
    ],
    ids=["classic", "connect", "no python", "no text"],
)
def test_the_line_that_says_what_happened(error: Exception, told: str) -> None:
    assert summarize_error(error) == told
