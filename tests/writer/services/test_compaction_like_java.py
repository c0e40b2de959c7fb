"""A compaction that Java Hudi made, taken back and made again here: the same rows, the same commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable, register_merger
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import COMPLETED
from hoodie_py.reader.merge import registry
from integration.corpus_mergers import CORPUS_MERGERS
from tests.corpus import corpus_names
from tests.writer.compaction_tables import QUICK, writable

TABLES = [
    name
    for name in (
        "compaction_done_mor_v8",
        "compaction_done_mor_v9",
        "custom_accumulate_compaction_mor_v8",
        "custom_custom_ordering_compaction_mor_v9",
        "logonly_bucket_mor_v8_compacted",
        "positions_after_compaction_mor_v9",
    )
    if name in corpus_names()
]
# What a stat says of times, of the new file itself, and of sizes that Java counts without block headers.
OWN = ("path", "runtime_stats", "total_log_read_time_ms", "total_log_size_compacted")
SIZES = ("total_write_bytes", "file_size_in_bytes")


def take_back(base: Path) -> tuple[str, CommitMetadata, dict[str, list[dict[str, object]]]]:
    """Remove the newest compaction's commit, inflight file and base files; return what they said."""
    table = HoodieTable.open(base)
    timeline = table.timeline
    folder = base / table.config.find_timeline_folder()
    plans = [path.name.partition(".")[0] for path in folder.glob("*.compaction.requested")]
    instant = timeline.find(max(plans))
    assert instant is not None
    assert instant.state == COMPLETED
    path = folder / instant.file_name(table.config.timeline_layout)
    commit = CommitMetadata.from_bytes(path.read_bytes())
    path.unlink()
    (folder / f"{instant.request_time}.compaction.inflight").unlink()
    written = {}
    for stat in commit.iterate_stats():
        file = base / (stat.path or "")
        written[f"{stat.partition_path}/{stat.file_id}"] = by_key(file)
        file.unlink()
    return instant.request_time, commit, written


def by_key(file: Path) -> list[dict[str, object]]:
    found = pq.ParquetFile(file).read().to_pylist()
    return sorted(
        ({name: value for name, value in row.items() if name != "_hoodie_file_name"} for row in found),
        key=lambda row: str(row["_hoodie_record_key"]),
    )


def facts(stat: WriteStat) -> dict[str, object]:
    return {name: getattr(stat, name) for name in WriteStat.__slots__ if name not in (*OWN, *SIZES)}


@pytest.mark.parametrize("name", TABLES)
def test_makes_the_commit_that_java_made(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", [])
    for merger in CORPUS_MERGERS.values():
        register_merger(merger)
    base = writable(name, tmp_path)
    instant, java, rows = take_back(base)
    result = HoodieTable.open(base).run_compaction(instant, options=QUICK)
    table = HoodieTable.open(base)
    completed = table.timeline.find(instant)
    assert completed is not None
    ours = table._snapshot.timeline.read_metadata(completed)
    assert (ours.operation_type, ours.compacted, ours.schema) == (java.operation_type, java.compacted, java.schema)
    assert ours.write_stats.keys() == java.write_stats.keys()
    assert {f"{s.partition_path}/{s.file_id}": facts(s) for s in ours.iterate_stats()} == {
        f"{s.partition_path}/{s.file_id}": facts(s) for s in java.iterate_stats()
    }
    for stat in ours.iterate_stats():
        file = base / (stat.path or "")
        assert by_key(file) == rows[f"{stat.partition_path}/{stat.file_id}"]
        assert set(pq.ParquetFile(file).read(["_hoodie_file_name"]).column(0).to_pylist()) <= {file.name}
        assert file.stat().st_size == stat.file_size_in_bytes == stat.total_write_bytes
    assert result.rows_written == sum(stat.num_writes for stat in java.iterate_stats())


@pytest.mark.parametrize("name", TABLES[:2])
def test_schema_of_files_is_java_s(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    java_file = next(base.rglob("*_1-*.parquet"), None) or next(base.rglob("*.parquet"))
    java = pq.ParquetFile(java_file).schema_arrow
    result = HoodieTable.open(base).compact(options=QUICK)
    new = next(base.rglob(f"*_{result.instant}.parquet"))
    assert pq.ParquetFile(new).schema_arrow.remove_metadata().equals(java.remove_metadata())
