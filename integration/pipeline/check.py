"""Compare the pipeline's table with the events in the landing zone, without Spark and without the table's merger.

python check.py --landing s3://lake/landing --table s3://lake/orders --endpoint-url http://s3:7070

If they differ, print the first differences and exit with status 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

import fsspec

from hoodie_py import HoodieTable

STATUSES = ["placed", "paid", "packed", "shipped", "delivered"]
FIELDS = ("customer", "city", "status", "cents", "updated_at")

Orders = dict[str, tuple[Any, ...]]


def read_expected(landing: str, store: Mapping[str, Any]) -> Orders:
    """Return the orders that the table must have, from all events; their order of arrival does not matter."""
    files, root = fsspec.url_to_fs(landing, **store)
    versions: dict[str, list[dict[str, Any]]] = {}
    deleted: set[str] = set()
    for path in files.glob(f"{root}/*/*.ndjson"):
        for line in files.read_text(path, encoding="utf-8").splitlines():
            event = json.loads(line)
            if event.get("op") == "d":
                deleted.add(event["before"]["order_id"])
                continue
            row = event.get("after", event)
            versions.setdefault(row["order_id"], []).append(row)
    last = {
        key: max(rows, key=lambda row: (STATUSES.index(row["status"]), row["updated_at"]))
        for key, rows in versions.items()
        if key not in deleted
    }
    return {key: tuple(row[name] for name in FIELDS) for key, row in last.items()}


def read_stored(table: str, store: Mapping[str, Any]) -> Orders:
    """Return the orders in the table's base files; exit with an error if there are log files."""
    opened = HoodieTable.open(table, store)
    with_logs = [each for each in opened.file_slices() if each.log_files]
    if with_logs:
        sys.exit(f"{len(with_logs)} file slices still have log files")
    rows = opened.scan(["order_id", *FIELDS], query_type="read_optimized").to_arrow().to_pylist()
    orders = {row["order_id"]: tuple(row[name] for name in FIELDS) for row in rows}
    if len(orders) != len(rows):
        sys.exit(f"{len(rows) - len(orders)} orders are there twice")
    return orders


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description="Compare the pipeline's table with the events it was made from.")
    parser.add_argument("--landing", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--endpoint-url", help="of an S3-compatible server")
    asked = parser.parse_args()
    store = {} if asked.endpoint_url is None else {"endpoint_url": asked.endpoint_url}
    want, have = read_expected(asked.landing, store), read_stored(asked.table, store)
    wrong = [key for key in sorted({*want, *have}) if want.get(key) != have.get(key)]
    for key in wrong[:10]:
        print(f"{key}: expected {want.get(key)}, found {have.get(key)}", file=sys.stderr)
    if wrong:
        sys.exit(f"{len(wrong)} of {len(want)} orders differ")
    print(f"{len(want)} orders, all as the events say")


if __name__ == "__main__":
    main()
