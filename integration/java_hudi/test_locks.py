"""Java's writers and ours keep each other out by the same lock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_py import ConflictError, TableFiles
from hoodie_py.writer.lock.choice import choose_lock
from hoodie_py.writer.lock.lock import hold
from integration.java_hudi.session import JavaHudiError
from integration.java_hudi.tables import SCHEMA, Kind, Lake, make_row, same_rows

MULTI_WRITER = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "500",
    "hoodie.write.lock.num_retries": "1",
    "hoodie.write.lock.client.num_retries": "1",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}


class MultiWriter(Kind):
    """A table whose writers share a lock file."""

    @property
    def write_options(self) -> dict[str, str]:
        return {**super().write_options, **MULTI_WRITER}


@pytest.mark.parametrize("lake", [Kind(9, True, True)], ids=str, indirect=True)
def test_a_lock_file_of_ours_keeps_java_out_and_javas_keeps_us_out(lake: Lake) -> None:
    shared = replace(lake, kind=MultiWriter(9, True, True))
    before = lake.check()
    files = TableFiles.open(lake.path)
    with hold(choose_lock(MULTI_WRITER, files)) as holding:
        with pytest.raises(JavaHudiError, match=r"(?i)lock"):
            shared.java.write(shared.path, [make_row(0, 9)], shared.kind.write_options, schema=SCHEMA)
        holding.ensure_held()
    same_rows(before, lake.check())
    shared.change(4)
    assert not (lake.path / ".hoodie" / "lock").exists()
    (lake.path / ".hoodie" / "lock").touch()
    with pytest.raises(ConflictError, match="lock"):
        lake.open().schedule_compaction(options=MULTI_WRITER)
    (lake.path / ".hoodie" / "lock").unlink()
    result = lake.open().compact(options=MULTI_WRITER)
    assert result.instant is not None
    shared.check()
    shared.change(6)
    shared.check()
