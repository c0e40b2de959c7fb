"""Running a compaction: what it writes, and what late attempts at its tasks leave."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import make_marker_folder
from hoodie_py.writer.services.compaction_report import CompactionResult, Progress
from tests.writer.compaction_tables import QUICK, leftovers, orphans, rows, writable
from tests.writer.services.engines import Late

V9 = "basic_mor_v9_part"
VERSIONS = ["basic_mor_v6_part", "basic_mor_v8_part", V9]


@pytest.mark.parametrize("name", VERSIONS)
def test_what_a_compaction_writes(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    slices = [each for each in table.file_slices() if each.log_files]
    told: list[Progress] = []
    result = table.compact(options=QUICK, on_progress=told.append)
    now = HoodieTable.open(base)
    instant = now.timeline.find(str(result.instant))
    assert instant is not None
    assert (instant.action, instant.state) == ("commit", "completed")
    names = {path.name for path in (base / now.config.find_timeline_folder()).glob(f"{result.instant}*")}
    completion = "" if now.config.timeline_layout == 1 else f"_{result.completion_time}"
    assert names == {
        f"{result.instant}.compaction.requested", f"{result.instant}.compaction.inflight",
        f"{result.instant}{completion}.commit",
    }  # fmt: skip
    assert (base / now.config.find_timeline_folder() / f"{result.instant}.compaction.inflight").read_bytes() == b""
    assert result.file_groups == len(slices)
    assert result.bytes_read == sum(
        (each.base_file.size if each.base_file else 0) + sum(log.size for log in each.log_files) for each in slices
    )
    metadata = now._snapshot.timeline.read_metadata(instant)
    assert metadata.operation_type == "COMPACT"
    assert metadata.compacted
    assert result.bytes_written == sum((base / (stat.path or "")).stat().st_size for stat in metadata.iterate_stats())
    assert result.rows_written == sum(
        pq.ParquetFile(base / (stat.path or "")).metadata.num_rows for stat in metadata.iterate_stats()
    )
    assert f"{result.rows_updated:,} updated" in str(result)
    assert told[-1].file_groups_done == told[-1].file_groups == len(slices)
    assert told[-1].rows == result.rows_written
    assert told[-1].seconds_left == 0
    assert leftovers(base) == []


def test_file_name_is_rewritten_and_other_meta_columns_stay(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    columns = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"]
    before = HoodieTable.open(base).scan(columns=columns).to_arrow().sort_by("_hoodie_record_key").to_pylist()
    result = HoodieTable.open(base).compact(options=QUICK)
    now = HoodieTable.open(base)
    assert now.scan(columns=columns).to_arrow().sort_by("_hoodie_record_key").to_pylist() == before
    for path in base.rglob(f"*_{result.instant}.parquet"):
        assert set(pq.ParquetFile(path).read(["_hoodie_file_name"]).column(0).to_pylist()) == {path.name}


def test_a_formatted_partition_column_keeps_its_own_values(tmp_path: Path) -> None:
    base = writable("ts_keygen_scalar_mor_v6", tmp_path)
    column = HoodieTable.open(base).config.partition_fields[0]
    old = [pq.ParquetFile(path).schema_arrow.field(column).type for path in base.rglob("*.parquet")]
    result = HoodieTable.open(base).compact(options=QUICK)
    new = [pq.ParquetFile(path).schema_arrow.field(column).type for path in base.rglob(f"*_{result.instant}.parquet")]
    assert set(new) == set(old)


def test_nothing_to_compact(tmp_path: Path) -> None:
    base = writable("empty_mor_v9", tmp_path)
    assert HoodieTable.open(base).schedule_compaction(options=QUICK) is None
    result = HoodieTable.open(base).compact(options=QUICK)
    assert result == CompactionResult()
    assert str(result) == "There was nothing to compact."


def test_a_plan_of_java_s_is_carried_out(tmp_path: Path) -> None:
    base = writable("compaction_pending_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    [pending] = [each.request_time for each in table.timeline.select_pending_compactions()]
    assert table.run_compaction(options=QUICK).instant == pending
    assert rows(HoodieTable.open(base)) == before
    assert HoodieTable.open(base).compact(options=QUICK).instant != pending
    assert rows(HoodieTable.open(base), "read_optimized") == before


def test_an_attempt_that_outlives_its_run_leaves_nothing(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    late = Late()
    result = HoodieTable.open(base).compact(late, options=QUICK)
    files = TableFiles.open(base)

    def remove_markers(rows: int) -> None:
        shutil.rmtree(base / make_marker_folder(str(result.instant)), ignore_errors=True)

    with pytest.raises(ConflictError, match="finished or taken back"):
        late.tasks[0].run(remove_markers)
    assert orphans(base) == []
    assert files.exists("p0")
