from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.properties import update_properties
from tests.writer.compaction_tables import QUICK, writable

PENDING = "20261121230000000"


def with_properties(base: Path, changes: dict[str, str | None]) -> None:
    path = base / ".hoodie/hoodie.properties"
    path.write_bytes(update_properties(path.read_bytes(), changes))


def refused(base: Path, text: str) -> None:
    """Neither planned nor carried out, and nothing written."""
    before = sorted(path for path in base.rglob("*"))
    for call in (
        lambda table: table.schedule_compaction(options=QUICK),
        lambda table: table.schedule_compaction(dry_run=True),
        lambda table: table.compact(options=QUICK),
    ):
        with pytest.raises(UnsupportedFeatureError, match=text):
            call(HoodieTable.open(base))
    assert sorted(path for path in base.rglob("*")) == before


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hoodie.table.base.file.format": "ORC"}, "format 'ORC'"),
        ({"hoodie.table.multiple.base.file.formats.enable": "true"}, "several base file formats"),
        ({"hoodie.table.type": "COPY_ON_WRITE"}, "COPY_ON_WRITE"),
    ],
)
def test_tables_with_such_properties(changes: dict[str, str | None], text: str, tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    with_properties(base, changes)
    refused(base, text)


def test_a_pending_restore(tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    (base / f".hoodie/timeline/{PENDING}.restore.requested").write_bytes(b"")
    refused(base, "pending restore")


def test_a_plan_is_not_run_once_the_table_has_changed(tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    HoodieTable.open(base).schedule_compaction(options=QUICK)
    with_properties(base, {"hoodie.table.multiple.base.file.formats.enable": "true"})
    with pytest.raises(UnsupportedFeatureError, match="several base file formats"):
        HoodieTable.open(base).run_compaction(options=QUICK)


def test_lock_providers_that_are_not_known(tmp_path: Path) -> None:
    table = HoodieTable.open(writable("basic_mor_v9_part", tmp_path))
    provider = {"hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"}
    with pytest.raises(UnsupportedFeatureError, match="DynamoDB"):
        table.schedule_compaction(options=provider)
    with pytest.raises(InvalidQueryError, match="concurrency"):
        table.schedule_compaction(options={"hoodie.write.concurrency.mode": "optimistic_concurrency_control"})


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_old_versions_are_read_and_say_how_to_upgrade(tmp_path: Path, version: int) -> None:
    """Hudi 0.9 to 0.13 stored such versions; beside the number, nothing that a read needs differs from version 6."""
    base = writable("basic_mor_v6_part", tmp_path)
    rows = HoodieTable.open(base).scan().to_arrow().sort_by("id")
    with_properties(base, {"hoodie.table.version": str(version)})
    table = HoodieTable.open(base)
    assert table.config.version == version
    assert table.scan().to_arrow().sort_by("id") == rows
    assert table.incremental().count() == rows.num_rows
    before = sorted(path for path in base.rglob("*"))
    calls: list[Callable[[], object]] = [
        lambda: table.upsert(rows),
        lambda: table.delete(["k1"]),
        table.compact,
        table.clean,
        lambda: table.rollback(PENDING),
    ]
    for call in calls:
        with pytest.raises(UnsupportedFeatureError, match=f"version {version}, which is only read(.|\\n)*Upgrade"):
            call()
    assert sorted(path for path in base.rglob("*")) == before


def test_a_metadata_table_itself_is_only_read(tmp_path: Path) -> None:
    table = HoodieTable.open(str(writable("mdt_files_mor_v9", tmp_path) / ".hoodie" / "metadata"))
    rows = table.scan().to_arrow()
    assert rows.num_rows == 3
    before = sorted(path for path in tmp_path.rglob("*"))
    calls: list[Callable[[], object]] = [
        lambda: table.upsert(rows),
        lambda: table.delete(["p0"]),
        table.compact,
        table.clean,
        lambda: table.rollback(PENDING),
    ]
    for call in calls:
        with pytest.raises(UnsupportedFeatureError, match="metadata table itself"):
            call()
    assert sorted(path for path in tmp_path.rglob("*")) == before
