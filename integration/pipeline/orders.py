"""Load the orders of a shop from a landing zone into a Hudi table; a program for spark-submit.

    spark-submit orders.py --landing s3://lake/landing --table s3://lake/orders --endpoint-url http://s3:7070

The landing zone has a folder of NDJSON files for each day. Lines are rows, or change events of a CDC tool: late, out of
order, some twice, some of them deletes. Day by day the program upserts the files and compacts the table. At the end it
cleans the table. Lines of JSON on stdout have the result of each step and the counts that readers see.

Credentials come from the environment (AWS_*), on the workers, too. The exit status is 1 if base files differ from
merged rows after a compaction.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import fsspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.spark import register, write

FORMAT = "hoodie_orders"  # PySpark 4.0 gives mergers only to a name that it has not found by itself
STATUSES = ("placed", "paid", "packed", "shipped", "delivered")
COLUMNS = (
    "order_id string, customer string, city string, status string, cents bigint, updated_at bigint, "
    "_hoodie_is_deleted boolean"
)


class OrderMerger(RecordMerger):
    """Deletes win, then the status that is further on, then the higher ordering value."""

    strategy_id = "5d3c0a4e-7c46-4f2a-8a55-2f6f6c1f9b10"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        def progress(version: Any) -> tuple[bool, int, int]:
            if version.is_delete:
                return (True, 0, 0)
            return (False, STATUSES.index(context.get_value(version, "status")), context.ordering_value(version))

        return newer if progress(newer) >= progress(older) else older


TABLE = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "order_id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "updated_at",
    "hoodie.write.record.merge.mode": "CUSTOM",
    "hoodie.write.record.merge.strategy.id": OrderMerger.strategy_id,
}


def parse_order(line: str) -> dict[str, Any]:
    """Return the row for a line of NDJSON, which is an order or a change event."""
    event = json.loads(line)
    if "op" not in event:
        return {**event, "_hoodie_is_deleted": False}
    deleted = event["op"] == "d"
    image = event["before" if deleted else "after"]
    return {**image, "updated_at": event["ts_ms"], "_hoodie_is_deleted": deleted}


def load_files(spark: SparkSession, paths: list[str], store: Mapping[str, Any]) -> DataFrame:
    """Return the rows of NDJSON files; each file is read in its own Spark task."""
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("order_id", "customer", "city", "status")),
            *((name, pa.int64()) for name in ("cents", "updated_at")),
            ("_hoodie_is_deleted", pa.bool_()),
        ]
    )

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch["path"].to_pylist():
                with fsspec.open(path, "rt", encoding="utf-8", **store) as lines:
                    yield pa.RecordBatch.from_pylist([parse_order(line) for line in lines], schema)

    files = spark.createDataFrame([(path,) for path in paths], "path string")
    return files.repartition(len(paths)).mapInArrow(read, COLUMNS)


def list_files_by_day(landing: str, store: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the landing zone's files by day, in order."""
    files, root = fsspec.url_to_fs(landing, **store)
    found: dict[str, list[str]] = {}
    for path in sorted(files.glob(f"{root}/*/*.ndjson")):
        found.setdefault(path.split("/")[-2], []).append(files.unstrip_protocol(path))
    return found


def count_orders(spark: SparkSession, table: str, options: Mapping[str, str], query: str) -> dict[str, Any]:
    """Return the number of orders and the sum of cents for each status."""
    reader = spark.read.format(FORMAT).options(**options).option("hoodie.datasource.query.type", query)
    by_status = reader.load(table).groupBy("status").agg(f.count("*").alias("n"), f.sum("cents").alias("cents"))
    return {row["status"]: [row["n"], row["cents"]] for row in by_status.orderBy("status").collect()}


def report(step: str, **facts: Any) -> None:
    """Print a line of JSON."""
    print(json.dumps({"step": step, **facts}), flush=True)


def run(spark: SparkSession, landing: str, path: str, endpoint: str | None, retain: int) -> int:
    """Load every day into the table and return the exit status."""
    store = {} if endpoint is None else {"endpoint_url": endpoint}
    options = {"storage_options": json.dumps(store)} if store else {}
    register(spark, mergers=[OrderMerger], name=FORMAT)
    for day, files in list_files_by_day(landing, store).items():
        written = write(load_files(spark, files, store), path, "upsert", merger=OrderMerger, **TABLE, **options)
        report("upsert", day=day, files=len(files), said=str(written))
        merged = count_orders(spark, path, options, "snapshot")
        report("read", day=day, snapshot=merged, read_optimized=count_orders(spark, path, options, "read_optimized"))

        table = HoodieTable.open(path, store)
        report("compact", day=day, said=str(table.compact(engine=spark, merger=OrderMerger)))
        compacted = count_orders(spark, path, options, "read_optimized")
        report("read", day=day, read_optimized=compacted)
        if compacted != merged:
            print(f"base files say {compacted}, merged rows said {merged}", file=sys.stderr)
            return 1
    cleaned = HoodieTable.open(path, store).clean(retain_commits=retain)
    report("clean", files_deleted=cleaned.files_deleted)
    return 0


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description="Bring the orders of a landing zone into a Hudi table.")
    parser.add_argument("--landing", required=True, help="URI of the landing zone")
    parser.add_argument("--table", required=True, help="URI of the table, which is made if there is none")
    parser.add_argument("--endpoint-url", help="of an S3-compatible server")
    parser.add_argument("--retain-commits", type=int, default=1, help="commits that queries of the past can reach")
    asked = parser.parse_args()
    spark = SparkSession.builder.appName("orders").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return run(spark, asked.landing, asked.table, asked.endpoint_url, asked.retain_commits)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
