"""How many requests follow one another when a table on S3 is made, written and read: each costs a round trip."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.testing import LocalS3
from tests.benchmarks.slow_s3 import SlowS3, slow_s3

pytest.importorskip("aiobotocore.client")
pytest.importorskip("moto.server")

SECONDS = 0.05  # that each request takes longer, so that requests at once overlap
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


@pytest.fixture(scope="module")
def server() -> Iterator[SlowS3]:
    with slow_s3(SECONDS, "trips") as server:
        yield server


def make_rows(first: int, count: int, partitions: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = [[f"k{each}" for each in numbers], [f"p{each % partitions}" for each in numbers], [1] * count]
    return pa.table(columns, schema=SCHEMA)


def create(s3: LocalS3, name: str) -> HoodieTable:
    uri = f"{s3.uri}/{name}"
    keys = {"record_key": "id", "partition_by": "part", "ordering": "ts"}
    return HoodieTable.create(uri, SCHEMA, **keys, storage_options=s3.storage_options)  # type: ignore[arg-type]


def test_requests_in_sequence(server: SlowS3) -> None:
    counts = {}
    with server.count() as made:
        table = create(server.s3, "ten")
        table.insert(make_rows(0, 100, 10))
        counts["first insert into 10 partitions"] = made.count_in_sequence()
    for name, act in {
        "upsert": lambda: table.upsert(make_rows(3, 1, 10)),
        "delete": lambda: table.delete(["k4"]),
        "compact": table.compact,
        "open": lambda: HoodieTable.open(table.uri, server.s3.storage_options),
    }.items():
        with server.count() as made:
            act()
            counts[name] = made.count_in_sequence()
    assert table.scan().count() == 99
    most = {"first insert into 10 partitions": 32, "upsert": 28, "delete": 36, "compact": 46, "open": 2}
    assert {name: count for name, count in counts.items() if count > most[name]} == {}
