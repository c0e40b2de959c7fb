"""One long-lived Java Hudi for many tests: a child process that writes, reads and services tables when asked."""

from __future__ import annotations

import json
import os
import select
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie_py import HoodieTable
from integration.java_hudi.environment import JavaHudi

_SERVER = Path(__file__).with_name("server.py")
_SECONDS = 1000.0  # a busy machine takes its time


class JavaHudiError(Exception):
    """Java Hudi, or Spark, raised; the text is theirs."""


class JavaSession:
    """Java Hudi in a process of its own. Use as a context manager.

    Args:
        environment: what to run.
        folder: for rows on their way, the warehouse, and the log of the process (``java.log``).
        settings: further ones of Spark.
    """

    def __init__(self, environment: JavaHudi, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._environment = environment
        self._log = folder / "java.log"
        env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "SPARK_HOME"}}
        env |= {"PYSPARK_PYTHON": environment.python, "PYSPARK_DRIVER_PYTHON": environment.python, "TZ": "UTC"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [environment.python, str(_SERVER), environment.jar, str(folder), json.dumps(dict(settings or {}))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=env, cwd=folder,
            )  # fmt: skip

    def write(
        self,
        table: str | Path,
        rows: pa.Table | Sequence[Mapping[str, Any]],
        options: Mapping[str, str],
        *,
        operation: str = "upsert",
        mode: str = "append",
        schema: pa.Schema | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows: insert, upsert, bulk_insert or delete; ``mode="overwrite"`` makes the table anew.

        ``types`` are Hudi's logical types of columns, such as ``{"v": "VECTOR(128)"}``.
        """
        data = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(row) for row in rows], schema)
        path = self._folder / f"rows-{uuid.uuid4().hex}.parquet"
        pq.write_table(data, path, store_schema=False)
        try:
            chosen = {**options, "hoodie.datasource.write.operation": operation}
            self._ask("write", table=str(table), rows=str(path), mode=mode, options=chosen, types=dict(types or {}))
        finally:
            path.unlink()

    def read(
        self, table: str | Path, *, where: str | None = None, metadata: bool | None = None, **options: str
    ) -> pa.Table:
        """Read a table afresh.

        Args:
            table: its base path.
            where: Spark SQL condition.
            metadata: whether to list by the metadata table; None is Java's default.
            options: further options of the reader, dots written as ``__``.
        """
        chosen = {name.replace("__", "."): value for name, value in options.items()}
        if metadata is not None:
            chosen["hoodie.metadata.enable"] = str(metadata).lower()
        into = self._folder / f"read-{uuid.uuid4().hex}"
        self._ask("read", table=str(table), into=str(into), options=chosen, where=where)
        return pq.read_table(into)

    def read_together(self, table: str | Path, reads: Sequence[tuple[str | None, Mapping[str, str]]]) -> list[pa.Table]:
        """Read a table afresh, by a condition and with options for each of some reads, all in one job."""
        into = self._folder / f"read-{uuid.uuid4().hex}"
        asked = [{"where": where, "options": dict(options)} for where, options in reads]
        self._ask("read_together", table=str(table), into=str(into), reads=asked)
        rows = pq.read_table(into)
        return [rows.filter(pc.field("read") == number).drop_columns(["read"]) for number in range(len(reads))]

    def find(self, table: str | Path, filters: Sequence[str], column: str, **options: str) -> list[list[Any]]:
        """Read a table afresh by each of some filters, in one job, and return the values of a column for each."""
        chosen = {name.replace("__", "."): value for name, value in options.items()}
        found: list[list[Any]] = self._ask(
            "find", table=str(table), filters=list(filters), column=column, options=chosen
        )
        return found

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Run one SQL statement, such as a call of a procedure."""
        found: list[dict[str, Any]] = self._ask("sql", text=text)
        return found

    def schedule_compaction(self, table: str | Path, options: Mapping[str, str]) -> str | None:
        """Plan a compaction; returns its instant, None when there was nothing to plan."""
        given = _options({"hoodie.compact.inline.max.delta.commits": "1", **options})
        planned = self.sql(f"call run_compaction(op => 'schedule', path => '{table}', options => '{given}')")
        return str(planned[0]["timestamp"]) if planned else None

    def run_compaction(self, table: str | Path, options: Mapping[str, str], instant: str | None = None) -> str | None:
        """Run a pending compaction, or plan and run one; returns its instant, None when there was nothing to do."""
        given = _options({"hoodie.compact.inline.max.delta.commits": "1", **options})
        at = f", timestamp => {instant}" if instant else ""
        done = self.sql(f"call run_compaction(op => 'run', path => '{table}'{at}, options => '{given}')")
        return str(done[0]["timestamp"]) if done else None

    def clustering(
        self,
        table: str | Path,
        options: Mapping[str, str],
        step: str = "scheduleAndExecute",
        instant: str | None = None,
    ) -> str | None:
        """Cluster; ``step`` is "schedule", "execute" a pending plan, or both; returns the instant, None for nothing.

        From table version 8 on Java's report leaves out plans that are not carried out, so the timeline is asked.
        """
        at = f", instants => '{instant}'" if instant else ""
        done = self.sql(f"call run_clustering(op => '{step}', path => '{table}'{at}, options => '{_options(options)}')")
        if done or step != "schedule":
            return str(done[0]["timestamp"]) if done else None
        planned = HoodieTable.open(table).timeline.select_pending_replacements().last
        return None if planned is None else planned.request_time

    def call(self, table: str | Path, procedure: str, **arguments: str | int | bool) -> list[dict[str, Any]]:
        """Call a procedure on a table and return its rows."""
        given = "".join(f", {name} => {_literal(value)}" for name, value in arguments.items())
        found: list[dict[str, Any]] = self._ask("call", table=str(table), procedure=procedure, arguments=given)
        return found

    def clean(self, table: str | Path, options: Mapping[str, str], retain_commits: int = 1) -> list[dict[str, Any]]:
        """Clean by Java's own rules; returns the report's rows."""
        return self.call(table, "run_clean", retain_commits=retain_commits, options=_options(options))

    def wrong_metadata(self, table: str | Path) -> list[dict[str, Any]]:
        """Files that the metadata table and the file system disagree about."""
        return self.call(table, "validate_metadata_table_files")

    @contextmanager
    def configured(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Set what procedures and SQL take from the session, which take no options; for a while."""
        self._ask("configure", settings=dict(settings))
        try:
            yield
        finally:
            self._ask("configure", settings=dict.fromkeys(settings))

    def version(self) -> dict[str, str]:
        """Versions of Spark and Java."""
        found: dict[str, str] = self._ask("version")
        return found

    def _ask(self, command: str, **arguments: Any) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"command": command, **arguments}).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise JavaHudiError(f"Java Hudi's process ended\n{self._tail()}") from None
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        line = process.stdout.readline() if ready else b""
        if not line:
            state = "ended" if ready else f"gave no answer in {_SECONDS:.0f} seconds"
            process.kill()
            raise JavaHudiError(f"Java Hudi's process {state}\n{self._tail()}")
        answer = json.loads(line)
        if "error" in answer:
            raise JavaHudiError(answer["error"])
        return answer["ok"]

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    @contextmanager
    def open_another(self) -> Iterator[JavaSession]:
        """Run a second process, which knows nothing of what this one did; for a while."""
        folder = self._folder / f"another-{uuid.uuid4().hex}"
        folder.mkdir()
        with JavaSession(self._environment, folder) as session:
            yield session

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(30)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _literal(value: str | int | bool) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def _options(options: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in options.items())
