"""Compaction on an S3 server: the same as on a disk, with conditional creation and Java's lock for such stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.testing import local_s3
from hoodie_py.writer.lock.choice import choose_lock
from tests.writer.compaction_tables import QUICK, rows, writable

pytestmark = pytest.mark.s3

STORAGE_LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.wait_time_ms": "0",
}


def uploaded(name: str, into: Path, files: TableFiles) -> None:
    base = writable(name, into)
    for path in sorted(base.rglob("*")):
        if path.is_file() and not path.name.endswith(".crc"):
            files.put(path.relative_to(base).as_posix(), path.read_bytes())


@pytest.mark.parametrize("name", ["basic_mor_v6_part", "basic_mor_v9_part", "mdt_all_mor_v9"])
def test_on_a_store_with_conditional_writes(name: str, tmp_path: Path) -> None:
    with local_s3(f"compaction-{name.replace('_', '-')}") as s3:
        uri = f"{s3.uri}/t"
        files = TableFiles.open(uri, s3.storage_options)
        uploaded(name, tmp_path, files)
        table = HoodieTable.open(uri, s3.storage_options)
        before = rows(table)
        options = {**QUICK, **STORAGE_LOCK}
        other = choose_lock(options, files)
        other.acquire(0)
        with pytest.raises(ConflictError):
            table.schedule_compaction(options=options)
        other.release()
        instant = table.schedule_compaction(options=options)
        assert table.run_compaction(instant, options=options).instant == instant
        now = HoodieTable.open(uri, s3.storage_options)
        assert rows(now) == rows(now, "read_optimized") == before
        kept = [info.path for info in files.list(".hoodie") if info.name == ".temp"]
        assert kept == []
        assert not files.exists(f".hoodie/.heartbeat/{instant}")


def test_in_memory(tmp_path: Path) -> None:
    uri = f"memory://{tmp_path.name}/t"
    files = TableFiles.open(uri)
    uploaded("basic_mor_v8_part", tmp_path, files)
    before = rows(HoodieTable.open(uri))
    HoodieTable.open(uri).compact(options=QUICK)
    assert rows(HoodieTable.open(uri), "read_optimized") == before
