"""A table piped to another by a streaming query, and what should have arrived.

The sink's rows are inserted, never merged: a row that came twice would be there twice. Run as a script, this starts the
query in a session of its own, which a trial kills with the driver.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from integration.crash.operations import QUICK
from integration.crash.stream_faults import FORMAT, PLAN, FaultySource

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string())])
KINDS = ((9, "MERGE_ON_READ"), (8, "COPY_ON_WRITE"), (6, "MERGE_ON_READ"), (9, "COPY_ON_WRITE"), (8, "MERGE_ON_READ"))
QUERY_SECONDS = 300
SINK = {
    **QUICK,
    "hoodie.table.name": "sink",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.client.heartbeat.interval_in_ms": "200",  # a killed writer is known to be dead at once
}
Rows = Counter[tuple[str, int]]


class Pipe:
    """A source, a sink and a checkpoint in a folder; ``wrote`` has what commits of the source wrote."""

    def __init__(self, folder: Path, version: int, kind: str) -> None:
        self.folder = folder
        self.kind = kind
        self.commits = 0
        self.wrote: Rows = Counter()
        self._source = HoodieTable.create(
            str(folder / "source"), SCHEMA, record_key="id", ordering="ts", partition_by=["part"], table_type=kind,
            table_version=version, properties=None,
        )  # fmt: skip

    def write(self, lot: random.Random) -> None:
        """Write a commit to the source: some old keys and a new one."""
        self.commits += 1
        keys = {f"k{lot.randrange(12)}" for _ in range(3)} | {f"new{self.commits}"}
        rows = [{"id": key, "ts": self.commits, "part": f"p{len(key) % 2}"} for key in sorted(keys)]
        self._source.upsert(pa.Table.from_pylist(rows, schema=SCHEMA), options=QUICK)
        self.wrote.update((key, self.commits) for key in keys)

    def serve(self, lot: random.Random) -> None:
        """Compact or clean the source now and then; what the stream has yet to read stays."""
        if self.kind == "MERGE_ON_READ" and lot.random() < 0.3:
            self._source.compact(options=QUICK)
        if lot.random() < 0.1:
            self._source.clean(retain_commits=8)

    def find_problems(self, *, complete: bool) -> list[str]:
        """Compare the sink with what was written; unless it is complete, rows may be missing."""
        found: Rows = Counter()
        if Path(self.folder, "sink", ".hoodie", "hoodie.properties").is_file():
            rows = HoodieTable.open(str(self.folder / "sink")).scan(columns=["id", "ts"]).to_arrow().to_pylist()
            found.update((row["id"], row["ts"]) for row in rows)
        problems = [f"{count} too many of {row}" for row, count in (found - self.wrote).items()]
        if complete:
            problems += [f"{count} missing of {row}" for row, count in (self.wrote - found).items()]
        return problems


def start_query(spark: Any, folder: Path, how: str = FORMAT) -> Any:
    """Start the query that pipes all there is, a commit at a time."""
    rows = (
        spark.readStream.format(how)
        .options(maxCommitsPerTrigger=1, columns="id,ts", **{PLAN: str(folder / "plan")})
        .load(str(folder / "source"))
    )
    return (
        rows.writeStream.format(how)
        .options(**SINK, **{PLAN: str(folder / "plan"), "checkpointLocation": str(folder / "checkpoint")})
        .trigger(availableNow=True)
        .start(str(folder / "sink"))
    )


def run_query(spark: Any, folder: Path, stop_after: float | None = None) -> str | None:
    """Run the query to its end, or stop it after some seconds; return what went wrong."""
    try:
        query = start_query(spark, folder)
        if stop_after is not None:
            query.awaitTermination(stop_after)
            query.stop()
            return None
        return None if query.awaitTermination(QUERY_SECONDS) else f"no end within {QUERY_SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def start_session() -> Any:
    """Start a session for many short queries."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("hoodie_py streams")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stopTimeout", "120s")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(FaultySource)
    return spark


if __name__ == "__main__":
    sys.exit(run_query(start_session(), Path(sys.argv[1])))
