"""Requests to S3 of whole calls, and how many of them follow one another, beside deltalake's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tests.benchmarks.slow_s3 import SlowS3, slow_s3

SECONDS = 0.02  # of a round trip
Counts = dict[str, int]
Act = Callable[[], object]


def make_rows(first: int, count: int, partitions: int, ts: int = 1) -> pa.Table:
    """Return rows with ids in order, which take turns in the partitions."""
    numbers = range(first, first + count)
    columns = [[f"k{each}" for each in numbers], [f"p{each % partitions}" for each in numbers], [ts] * count]
    return pa.table(columns, ["id", "part", "ts"])


def count_hoodie() -> Counts:
    """Count the requests of hoodie_py."""
    from hoodie_py import HoodieTable

    with slow_s3(SECONDS) as server:
        options = server.s3.storage_options

        def create(name: str, partitions: int) -> HoodieTable:
            rows = make_rows(0, 1000, partitions)
            keys: dict[str, Any] = {"record_key": "id", "partition_by": "part", "ordering": "ts"}
            table = HoodieTable.create(f"{server.s3.uri}/{name}", rows.schema, **keys, storage_options=options)
            table.insert(rows)
            return table

        create("warm", 1)
        found = _count(server, {"create_100": lambda: create("hundred", 100), "create_10": lambda: create("ten", 10)})
        table = HoodieTable.open(f"{server.s3.uri}/ten", options)
        return found | _count(
            server,
            {
                "upsert": lambda: table.upsert(make_rows(5, 1, 10, ts=2)),
                "delete": lambda: table.delete(make_rows(7, 1, 10)),
                "compact": table.compact,
                "open": lambda: HoodieTable.open(table.uri, options),
                "read": lambda: table.scan().to_arrow(),
            },
        )


def count_deltalake() -> Counts:
    """Count the requests of deltalake; its compaction is ``optimize.compact``."""
    from deltalake import DeltaTable, write_deltalake

    with slow_s3(SECONDS) as server:
        options = {**server.s3.env, "AWS_CONDITIONAL_PUT": "etag"}

        def create(name: str, partitions: int) -> None:
            rows = make_rows(0, 1000, partitions)
            write_deltalake(f"{server.s3.uri}/{name}", rows, partition_by=["part"], storage_options=options)

        def upsert(ts: int) -> None:
            merge = DeltaTable(uri, storage_options=options).merge(
                make_rows(5, 1, 10, ts=ts), "t.id = s.id and t.part = s.part", source_alias="s", target_alias="t"
            )
            merge.when_matched_update_all().when_not_matched_insert_all().execute()

        create("warm", 1)
        found = _count(server, {"create_100": lambda: create("hundred", 100), "create_10": lambda: create("ten", 10)})
        uri = f"{server.s3.uri}/ten"
        return found | _count(
            server,
            {
                "upsert": lambda: upsert(2),
                "delete": lambda: DeltaTable(uri, storage_options=options).delete("id = 'k7' and part = 'p7'"),
                "compact": lambda: _compact_delta(DeltaTable(uri, storage_options=options)),
                "open": lambda: DeltaTable(uri, storage_options=options),
                "read": lambda: DeltaTable(uri, storage_options=options).to_pyarrow_table(),
            },
        )


def _compact_delta(table: Any) -> None:
    table.optimize.compact()


def _count(server: SlowS3, acts: Mapping[str, Act]) -> Counts:
    found: Counts = {}
    for name, act in acts.items():
        with server.count() as made:
            act()
            found[f"{name}_in_sequence"], found[name] = made.count_in_sequence(), len(made.spans)
    return found
