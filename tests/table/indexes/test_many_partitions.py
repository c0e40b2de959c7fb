"""What a filter on a partition column asks of a store with ten thousand partitions, with and without a metadata table.

The server counts requests. All of them are made one after the other at worst, so the counts bound the round trips.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from tests.benchmarks.counting_s3 import BUCKET, CountingS3, counting_s3
from tests.benchmarks.scale_tables import make_wide_table
from tests.table.indexes.fabricated import add_metadata_table

PARTITIONS = 10_000
MOST_CALLS, MOST_ROUND_TRIPS = 20, 40


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, corpus: Callable[[str], Path]) -> Iterator[CountingS3]:
    """Two tables with the same files, ``listed`` without a metadata table."""
    folder = tmp_path_factory.mktemp("lake")
    make_wide_table(folder / "listed", PARTITIONS, 2, PARTITIONS)
    shutil.copytree(folder / "listed", folder / "indexed", copy_function=os.link)
    properties = folder / "indexed" / ".hoodie" / "hoodie.properties"
    text = properties.read_bytes()
    properties.unlink()
    properties.write_bytes(text)
    add_metadata_table(folder / "indexed", corpus("mdt_files_mor_v9"))
    with counting_s3(folder) as server:
        yield server


def open_table(server: CountingS3, name: str) -> HoodieTable:
    place = {"endpoint_url": server.env["AWS_ENDPOINT_URL"]}
    options = {"client_kwargs": place, "key": "reader", "secret": "reader"}
    return HoodieTable.open(f"s3://{BUCKET}/{name}", storage_options=options)


@pytest.mark.parametrize("name", ["listed", "indexed"])
@pytest.mark.parametrize(("text", "found"), [("part = 'p77'", 1), ("part in ('p5', 'p99', 'none')", 2)])
def test_a_partition_filter_asks_little(lake: CountingS3, name: str, text: str, found: int) -> None:
    with lake.count() as traffic:
        scan = open_table(lake, name).scan(filter=text)
        tasks = scan.tasks()
        planned = sum(traffic.requests.values())
        rows = scan.to_arrow().num_rows
        asked = sum(traffic.requests.values())
    assert (len(tasks), rows) == (found, found)
    assert planned <= MOST_CALLS
    assert asked < MOST_ROUND_TRIPS


def test_all_files_are_listed_by_the_metadata_table_alone(lake: CountingS3) -> None:
    table = open_table(lake, "indexed")
    with lake.count() as traffic:
        tasks = table.scan().tasks()
    assert len(tasks) == PARTITIONS
    assert sum(traffic.requests.values()) <= MOST_CALLS


@pytest.mark.parametrize("name", ["listed", "indexed"])
@pytest.mark.parametrize("text", [None, "part <> 'p0'"])
def test_a_few_rows_ask_little(lake: CountingS3, name: str, text: str | None) -> None:
    with lake.count() as traffic:
        assert open_table(lake, name).scan(filter=text, limit=3).to_arrow().num_rows == 3
        assert open_table(lake, name).scan(filter=text, limit=3).count() == 3
    assert sum(traffic.requests.values()) < 2 * MOST_ROUND_TRIPS
