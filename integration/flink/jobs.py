"""Talk to Flink: streaming jobs that write to a Hudi table, and Flink's own answers about it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from hoodie_py.cli.commands.doctor import find_java
from integration.flink.environment import HERE, find_or_fetch

_OPENED = ("lang", "lang.reflect", "net", "nio", "text", "time", "util", "util.concurrent", "util.concurrent.atomic")
_LOGGING = """status = error
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


class FlinkError(Exception):
    """Flink refused a statement, or its process ended."""


class FlinkJobs:
    """A process with Flink. Use it as a context; ``folder`` takes its log (``flink.log``)."""

    def __init__(self, folder: Path) -> None:
        java = find_java()
        assert java is not None
        jars = find_or_fetch()
        self._log = folder / "flink.log"
        logging = folder / "log4j2.properties"
        logging.write_text(_LOGGING)
        opened = [f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in _OPENED]
        command = [
            java.command,
            "-Xmx2g",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *opened,
            "-Duser.timezone=UTC",
        ]
        command += [f"-Dlog4j.configurationFile=file:{logging}", "-cp", f"{jars}/*", str(HERE / "Jobs.java")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env={**os.environ, "TZ": "UTC"},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def declare(self, name: str, columns: str, options: Mapping[str, str]) -> None:
        """Declare a table."""
        given = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        self._ask("declare", "", f"CREATE TABLE {name} {columns} WITH ({given})")

    def start(self, job: str, statement: str) -> None:
        """Start a streaming job."""
        self._ask("start", job, statement)

    def read_state(self, job: str) -> str:
        """Return Flink's word for the state of a job, such as RUNNING."""
        return self._ask("state", job, "")

    def stop(self, job: str) -> None:
        """Cancel a job."""
        self._ask("stop", job, "")

    def read_rows(self, query: str) -> list[tuple[str, ...]]:
        """Return the rows of a batch query as texts, sorted."""
        text = self._ask("rows", "", query)
        return sorted(tuple(row.split("\x1f")) for row in text.split("\x1e")) if text else []

    def _ask(self, verb: str, argument: str, statement: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{verb}\t{argument}\t{' '.join(statement.split())}\n")
        self._process.stdin.flush()
        kind, _, text = self._process.stdout.readline().rstrip("\n").partition("\t")
        if kind != "ok":
            raise FlinkError(text or f"Flink has ended; see {self._log}")
        return text


def wait_until(check: Callable[[], bool], seconds: float = 90) -> None:
    """Call a function until it returns True."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise AssertionError(f"It took more than {seconds} s.")
        time.sleep(0.2)
