"""A streaming job of Flink that writes to a Hudi table, and a model of the table's rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hoodie_py import HoodieTable
from integration.flink.jobs import FlinkJobs, wait_until

Row = tuple[str, str, int, str]
COLUMNS = "(id STRING, part STRING, ts BIGINT, name STRING"


class Stream:
    """A job that writes rows to a table as they are fed to it: id, partition, time and name. The latest time wins."""

    def __init__(self, flink: FlinkJobs, folder: Path, options: Mapping[str, str]) -> None:
        self.base = folder / "table"
        self.rows: dict[tuple[str, str], Row] = {}
        self._flink = flink
        self._name = f"t{abs(hash(str(folder)))}"
        self._source, self._waiting, self._fed = folder / "source", folder / "waiting", 0
        self._source.mkdir()
        self._waiting.mkdir()
        source = {"connector": "filesystem", "path": f"file://{self._source}", "format": "json"}
        flink.declare(f"{self._name}_source", f"{COLUMNS})", {**source, "source.monitor-interval": "500ms"})
        table = {
            "connector": "hudi",
            "path": f"file://{self.base}",
            "hoodie.datasource.write.recordkey.field": "id",
            "precombine.field": "ts",
            "compaction.async.enabled": "false",
            "compaction.schedule.enabled": "false",
            "clean.async.enabled": "false",
            "hoodie.archive.automatic": "false",
            "metadata.enabled": "false",
            "index.bootstrap.enabled": "true",
            "write.tasks": "1",
            "write.bucket_assign.tasks": "1",
        }
        columns = f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (part)"
        flink.declare(self._name, columns, {**table, **options})

    def start(self) -> None:
        """Start the job; one that goes on reads all its input anew, which changes nothing."""
        self._flink.start(self._name, f"INSERT INTO {self._name} SELECT * FROM {self._name}_source")

    def stop(self) -> None:
        """Cancel the job."""
        self._flink.stop(self._name)

    def ensure_running(self) -> None:
        """Fail if the job has failed."""
        assert self._flink.read_state(self._name) == "RUNNING"

    def feed(self, rows: Iterable[Row]) -> None:
        """Give the job rows, and wait until they are in the table."""
        rows = list(rows)
        self.merge(rows)
        self._fed += 1
        file = self._waiting / f"{self._fed:04}.json"
        keys = ("id", "part", "ts", "name")
        file.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
        file.rename(self._source / file.name)
        wait_until(lambda: self._has_failed() or set(rows) <= set(self._read()))
        self.ensure_running()

    def merge(self, rows: Iterable[Row]) -> None:
        """Tell the model of rows that were written."""
        for row in rows:
            key = row[0], row[1]
            if key not in self.rows or self.rows[key][2] <= row[2]:
                self.rows[key] = row

    def check(self) -> None:
        """Compare the table's rows with the model, as we read them and as Flink does."""
        expected = sorted(self.rows.values())
        assert self._read() == expected
        query = f"SELECT id, part, ts, name FROM {self._name}"
        assert self._flink.read_rows(query) == [(key, part, str(ts), name) for key, part, ts, name in expected]

    @property
    def table(self) -> HoodieTable:
        """The table, opened anew."""
        return HoodieTable.open(self.base)

    @property
    def pending(self) -> str:
        """The instant that the job writes to."""
        [found] = [each.request_time for each in self.table.timeline.select_pending() if each.action != "compaction"]
        return found

    def list_files(self) -> dict[str, int]:
        """Return all files of the table, with their sizes."""
        return {str(each): each.stat().st_size for each in self.base.rglob("*") if each.is_file()}

    def _read(self) -> list[Row]:
        if not (self.base / ".hoodie/hoodie.properties").exists():
            return []
        rows: Any = self.table.to_arrow(columns=["id", "part", "ts", "name"]).to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    def _has_failed(self) -> bool:
        return self._flink.read_state(self._name) not in ("CREATED", "INITIALIZING", "RUNNING")
