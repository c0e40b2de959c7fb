"""Processes that bring the first keys of the same buckets at once: never two file groups of one bucket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.hashing_metadata import CONSISTENT_FOLDER, HashingMetadata
from hoodie_py.options.write import NULL_FOR_MISSING
from hoodie_py.testing import local_s3
from tests.corpus import ROOT, unpack
from tests.writer.written_tables import SCHEMA

_WRITER = """
import json, sys, time
from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
uri, storage, options, name, operations, part, start = json.loads(sys.argv[1])
for number, operation in enumerate(operations):
    time.sleep(max(0, start + 4 * number - time.time()))  # all at once
    rows = [{"id": f"{name}-{number}-{i}", part: f"n{number}", "ts": 1, "name": name} for i in range(40)]
    while True:
        try:
            getattr(HoodieTable.open(uri, storage), operation)(rows, options)
            break
        except ConflictError:
            time.sleep(0.05)
"""
_NAMES = ("a", "b")
_OPERATIONS = ("upsert", "bulk_insert", "insert")
_BESIDE_OTHERS = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}  # else they wait for each other
_LOCK = {
    place: {
        **_BESIDE_OTHERS,
        "hoodie.write.lock.provider": f"org.apache.hudi.client.transaction.lock.{name}LockProvider",
    }
    for place, name in (("disk", "FileSystemBased"), ("s3", "StorageBased"))
}


def _race(uri: str, storage: Mapping[str, Any], options: Mapping[str, str], part: str) -> None:
    """Have processes write to the same new partitions, one after the other, all at once."""
    start = time.time() + 3
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'storage'}"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, json.dumps([uri, storage, options, name, _OPERATIONS, part, start])],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for name in _NAMES
    ]  # fmt: skip
    for each in running:
        _, errors = each.communicate(timeout=280)
        assert each.returncode == 0, errors


def _check(table: HoodieTable, known: int) -> None:
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    rows = table.scan(columns=columns).to_arrow().to_pylist()
    assert len(rows) == known + 40 * len(_NAMES) * len(_OPERATIONS)
    assert max(Counter((row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in rows).values()) == 1
    groups = Counter((each.partition_path, each.file_id[:8]) for each in table.file_slices())
    assert max(groups.values()) == 1


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    """Where a table may be: its URI, storage options, and the writers' options."""
    if request.param == "disk":
        yield str(tmp_path / "t"), {}, _LOCK["disk"]
        return
    with local_s3("new-buckets") as s3:
        yield f"{s3.uri}/t", dict(s3.storage_options), _LOCK["s3"]


on_disk_and_s3 = pytest.mark.parametrize(
    "places", ["disk", pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.thorough])], indirect=True
)  # fmt: skip


@pytest.mark.timeout(300)
@on_disk_and_s3
def test_numbered_buckets_are_made_once(places: tuple[str, dict[str, Any], dict[str, str]]) -> None:
    uri, storage, options = places
    HoodieTable.create(
        uri, SCHEMA, record_key="id", ordering="ts", partition_by=["part"], table_type="MERGE_ON_READ",
        storage_options=storage,
    )  # fmt: skip
    table = HoodieTable.open(uri, storage)
    first = [{"id": f"first-{i}", "part": "p", "ts": 1, "name": "first"} for i in range(200)]
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    table.upsert(first, {**options, **buckets})
    _race(uri, storage, options, "part")
    _check(HoodieTable.open(uri, storage), len(first))


@pytest.mark.timeout(300)
@on_disk_and_s3
def test_ranges_of_hashes_are_begun_once(places: tuple[str, dict[str, Any], dict[str, str]], tmp_path: Path) -> None:
    uri, storage, options = places
    base = unpack("flink_mor_bucket_consistent", tmp_path / "unpacked")
    files = TableFiles.open(uri, storage)
    for each in base.rglob("*"):
        if each.is_file() and not each.name.endswith(".crc"):
            files.put(each.relative_to(base).as_posix(), each.read_bytes())
    rows = HoodieTable.open(uri, storage).scan().to_arrow().num_rows
    _race(uri, storage, {**options, NULL_FOR_MISSING: "true"}, "dt")
    table = HoodieTable.open(uri, storage)
    _check(table, rows)
    for number in range(len(_OPERATIONS)):
        path = f"{CONSISTENT_FOLDER}/n{number}/00000000000000.hashing_meta"
        ranges = HashingMetadata.from_bytes(files.read(path))
        found = {each.file_id for each in table.file_slices() if each.partition_path == f"n{number}"}
        assert found <= set(ranges.file_ids)
