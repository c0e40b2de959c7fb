"""How many requests follow one another when a table on S3 is made, written and read: each costs a round trip."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.testing import LocalS3, local_s3

aiobotocore_client = pytest.importorskip("aiobotocore.client")

SECONDS = 0.05  # that each request takes longer, so that requests at once overlap
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


@dataclass
class Requests:
    """When requests began and ended."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def count_in_sequence(self) -> int:
        """Return the largest number of requests of which each began after the one before had ended."""
        found, end = 0, 0.0
        for began, ended in sorted(self.spans, key=lambda span: span[1]):
            if began >= end:
                found, end = found + 1, ended
        return found


@pytest.fixture(scope="module")
def s3() -> Iterator[LocalS3]:
    with local_s3() as server:
        yield server


@contextmanager
def slow_requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    made = Requests()
    real = aiobotocore_client.AioBaseClient._make_api_call

    async def call(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
        began = time.monotonic()
        await asyncio.sleep(SECONDS)
        try:
            return await real(client, operation, arguments)
        finally:
            made.spans.append((began, time.monotonic()))

    with monkeypatch.context() as patched:
        patched.setattr(aiobotocore_client.AioBaseClient, "_make_api_call", call)
        yield made


def make_rows(first: int, count: int, partitions: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = [[f"k{each}" for each in numbers], [f"p{each % partitions}" for each in numbers], [1] * count]
    return pa.table(columns, schema=SCHEMA)


def create(s3: LocalS3, name: str) -> HoodieTable:
    uri = f"{s3.uri}/{name}"
    keys = {"record_key": "id", "partition_by": "part", "ordering": "ts"}
    return HoodieTable.create(uri, SCHEMA, **keys, storage_options=s3.storage_options)  # type: ignore[arg-type]


def test_requests_in_sequence(s3: LocalS3, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {}
    with slow_requests(monkeypatch) as made:
        table = create(s3, "ten")
        table.insert(make_rows(0, 100, 10))
        counts["first insert into 10 partitions"] = made.count_in_sequence()
    for name, act in {
        "upsert": lambda: table.upsert(make_rows(3, 1, 10)),
        "delete": lambda: table.delete(["k4"]),
        "compact": table.compact,
        "open": lambda: HoodieTable.open(table.uri, s3.storage_options),
    }.items():
        with slow_requests(monkeypatch) as made:
            act()
            counts[name] = made.count_in_sequence()
    assert table.scan().count() == 99
    most = {"first insert into 10 partitions": 24, "upsert": 22, "delete": 22, "compact": 37, "open": 2}
    assert {name: count for name, count in counts.items() if count > most[name]} == {}
