"""A base file merged with a write's records: the table's rules decide, and only changed rows get new meta columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import BufferedRecord, HoodieTable, MergeError, RecordContext, RecordMerger
from hoodie_py.files import TableFiles
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.formats.parquet.bloom_hashes import KeyBytes
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.handles.merge import RewriteTask
from hoodie_py.writer.records import WriteOperation, WriteRecords
from tests.writer.written_tables import Kind, begun, contents, put, records, row, schema_of

INSTANT = "20990101000000001"


class Sum(RecordMerger):
    """Adds the ordering values up; a delete wins if it is marked so."""

    strategy_id = "5d0b3ae2-0a7b-4b5e-9b53-0a4d4c1f8a11"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        if newer.is_delete:
            return newer if context.get_value(newer, "name") == "gone" else older
        total = context.get_value(older, "ts") + context.get_value(newer, "ts")
        return context.replace(older, ts=total)


def start(base: Path) -> Path:
    Kind(9, False, partitioned=False).create(base)
    put(base, records([row(i, 5) for i in range(6)], partitioned=False), WriteOperation.INSERT)
    return base


def rewrite(base: Path, given: WriteRecords, merger: type[RecordMerger] | None = None) -> TaskResult:
    snapshot = open_snapshot(TableFiles.open(base))
    schema = schema_of(snapshot)
    facts = begun(snapshot, INSTANT, "commit")
    [old] = snapshot.file_slices()
    info = snapshot.read_info(old).as_stored(schema.arrow, schema.defaults)
    return RewriteTask(facts, 4, old, info, merger).run(given)


def rows(base: Path, result: TaskResult) -> dict[str, dict[str, Any]]:
    found = pq.read_table(base / result.path, partitioning=None).to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: each for each in found}


def test_late_rows_lose_and_others_win(tmp_path: Path) -> None:
    before = {each["id"]: each for each in HoodieTable.open(start(tmp_path)).scan().to_arrow().to_pylist()}
    given = records(
        [row(0, 4, "late"), row(1, 5, "same"), row(2, 6, "new"), row(3, 6), row(4, 4), row(9, 1, "insert"), row(8, 1)],
        partitioned=False, deletes=[3, 4, 6],
    )  # fmt: skip
    result = rewrite(tmp_path, given)
    found = rows(tmp_path, result)
    assert {key: each["name"] for key, each in found.items()} == {
        "k0": "a", "k1": "same", "k2": "new", "k4": "a", "k5": "a", "k9": "insert",
    }  # fmt: skip
    name = result.path
    assert {each["_hoodie_file_name"] for each in found.values()} == {name}
    for key in ("k0", "k4", "k5"):
        assert {**found[key], "_hoodie_file_name": ""} == {**before[key], "_hoodie_file_name": ""}
    changed = [found[key] for key in ("k1", "k2", "k9")]
    assert {each["_hoodie_commit_time"] for each in changed} == {INSTANT}
    assert len({each["_hoodie_commit_seqno"] for each in changed}) == 3
    assert all(each["_hoodie_commit_seqno"].startswith(f"{INSTANT}_4_") for each in changed)
    stat = result.stat
    assert (stat.num_writes, stat.num_update_writes, stat.num_inserts) == (6, 2, 1)
    assert stat.prev_base_file is not None
    assert stat.prev_commit == before["k0"]["_hoodie_commit_time"]


def test_a_custom_merger_decides_about_updates_and_deletes(tmp_path: Path) -> None:
    given = records([row(0, 7), row(1, 9, "gone"), row(2, 9, "stays"), row(9, 1)], partitioned=False, deletes=[1, 2])
    found = rows(start(tmp_path), rewrite(tmp_path, given, Sum))
    assert {key: each["ts"] for key, each in found.items()} == {"k0": 12, "k2": 5, "k3": 5, "k4": 5, "k5": 5, "k9": 1}
    assert found["k0"]["_hoodie_commit_time"] == INSTANT, "the merger made the row of an old one, yet it changed"
    assert found["k0"]["_hoodie_record_key"] == "k0"
    assert found["k2"]["_hoodie_commit_time"] != INSTANT


def test_deletes_by_key_need_no_rows(tmp_path: Path) -> None:
    whole = records([row(0, 4), row(1, 6)], partitioned=False, deletes=[0, 1])
    bare = WriteRecords(pa.table({}), whole.keys, whole.partition_paths, whole.deletes)
    assert rows(start(tmp_path), rewrite(tmp_path, bare)).keys() == {"k2", "k3", "k4", "k5"}
    ordered = WriteRecords(pa.table({}), whole.keys, whole.partition_paths, whole.deletes, whole.ordering)
    assert rows(tmp_path, rewrite(tmp_path, ordered)).keys() == {"k0", "k2", "k3", "k4", "k5"}


def test_all_rows_may_go(tmp_path: Path) -> None:
    given = records([row(i, 9) for i in range(6)], partitioned=False, deletes=range(6))
    result = rewrite(start(tmp_path), given)
    assert pq.read_table(tmp_path / result.path, partitioning=None).num_rows == 0
    assert result.stat.num_deletes == 6


def test_nothing_shows_before_the_commit(tmp_path: Path) -> None:
    before = contents(start(tmp_path))
    rewrite(tmp_path, records([row(0, 9, "z")], partitioned=False))
    assert contents(tmp_path) == before


def test_a_failing_merger_leaves_no_file(tmp_path: Path) -> None:
    class Broken(Sum):
        def merge(self, *_: Any) -> BufferedRecord[Any]:
            raise RuntimeError("no")

    start(tmp_path)
    with pytest.raises(MergeError, match="Broken"):
        rewrite(tmp_path, records([row(0, 9)], partitioned=False), Broken)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def read_bloom(base: Path) -> BloomFilter:
    [slice_] = HoodieTable.open(base).file_slices()
    assert slice_.base_file is not None
    facts = pq.read_metadata(base / slice_.base_file.path).metadata or {}
    return BloomFilter.from_text(facts[BLOOM_KEY.encode()].decode(), facts[BLOOM_TYPE_KEY.encode()].decode())


def test_a_large_file_keeps_its_bloom_filter_and_only_keys_of_the_write_are_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable.open(Kind(9, False, partitioned=False).create(tmp_path))
    table.bulk_insert([row(i, 5) for i in range(12_000)])
    before = read_bloom(tmp_path)
    hashed = []
    original = KeyBytes.of
    monkeypatch.setattr(KeyBytes, "of", lambda keys: hashed.append(len(keys)) or original(keys))
    table.upsert([row(i, 6, "new") for i in range(11_990, 12_010)])
    table.delete([row(i, 7) for i in range(5)])
    assert max(hashed) == 20
    after = read_bloom(tmp_path)
    assert (after.bits, after.hashes) == (before.bits, before.hashes)
    found = table.scan(columns=["id", "name"]).to_arrow()
    assert found.num_rows == 12_005
    assert after.may_contain(found["id"].combine_chunks()).all()
    table.upsert([row(0, 8)], options={"hoodie.index.bloom.fpp": "0.001"})
    assert read_bloom(tmp_path).bits < before.bits / 2
    assert read_bloom(tmp_path).may_contain(table.scan(columns=["id"]).to_arrow()["id"].combine_chunks()).all()
