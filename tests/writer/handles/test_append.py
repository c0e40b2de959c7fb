"""A log file holds what was written, under the name and with the headers that Java gives it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.log.blocks import decode_delete_block, decode_positions, decode_records
from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, iterate_blocks
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.handles.append import AppendTask
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.records import WriteRecords
from hoodie_py.writer.settings import FileSettings
from tests.watched_requests import meeting_request, writes
from tests.writer.written_tables import Kind, begun, records, row

INSTANT = "20260101000000001"
BASE = "20250101000000001"


def task(base: Path, table_version: int = 9, *, captures: bool = False, **more: Any) -> AppendTask:
    snapshot = open_snapshot(TableFiles.open(Kind(table_version, True, captures=captures).create(base)))
    facts = begun(snapshot, INSTANT, "deltacommit")
    given = {"positions_of": BASE, "base_instant": BASE, **more}
    return AppendTask(facts, 5, "p0", "3f2a-0", **given)


def blocks(base: Path, path: str) -> list[LogBlock]:
    found = list(iterate_blocks((base / path).read_bytes()))
    assert all(isinstance(each, LogBlock) for each in found)
    return [each for each in found if isinstance(each, LogBlock)]


def positions(block: LogBlock) -> list[int] | None:
    text = block.headers.get(HeaderKey.RECORD_POSITIONS)
    if text is None:
        assert HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS not in block.headers
        return None
    assert block.headers[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] == BASE
    return decode_positions(text).tolist()


def six(deletes: Sequence[int] = ()) -> WriteRecords:
    return records([row(i, 10 + i) for i in range(6)], deletes=deletes)


def test_rows_and_deletes_are_blocks_of_one_file(tmp_path: Path) -> None:
    result = task(tmp_path).run(six([1, 4]), np.array([50, 40, 30, 20, 10, 0]))
    data, deleted = blocks(tmp_path, result.path)
    assert (data.type, deleted.type) == (BlockType.AVRO_DATA, BlockType.DELETE)
    rows = decode_records(data).to_pylist()
    assert [each["id"] for each in rows] == ["k5", "k3", "k2", "k0"]
    assert positions(data) == [0, 20, 30, 50]
    assert {each["_hoodie_commit_time"] for each in rows} == {INSTANT}
    assert {each["_hoodie_file_name"] for each in rows} == {"3f2a-0"}
    assert {each["_hoodie_partition_path"] for each in rows} == {"p0"}
    assert [each["_hoodie_record_key"] for each in rows] == [each["id"] for each in rows]
    assert [each["_hoodie_commit_seqno"] for each in rows] == [f"{INSTANT}_5_{i}" for i in range(4)]
    gone = decode_delete_block(deleted)
    assert gone.keys.to_pylist() == ["k4", "k1"]
    assert positions(deleted) == [10, 40]
    assert list(gone.values) == [14, 11]
    assert (result.stat.num_writes, result.stat.num_deletes, result.stat.num_update_writes) == (4, 2, 4)
    assert result.stat.file_size_in_bytes == (tmp_path / result.path).stat().st_size
    assert result.path.startswith(f"p0/.3f2a-0_{INSTANT}.log.1_5-77-")


@pytest.mark.parametrize(
    ("version", "known", "of"),
    [(9, [3, -1, 1, 2, 4, 5], BASE), (9, [3, 3, 1, 2, 4, 5], BASE), (9, [3, 0, 1, 2, 4, 5], None), (6, range(6), BASE)],
)
def test_positions_are_left_out_unless_all_are_known(
    version: int, known: Sequence[int], of: str | None, tmp_path: Path
) -> None:
    result = task(tmp_path, version, positions_of=of).run(six([1]), np.array(known))
    assert [positions(block) for block in blocks(tmp_path, result.path)] == [None, None]


def test_version_6_names_the_slice(tmp_path: Path) -> None:
    result = task(tmp_path, 6, version=3, base_file="b.parquet", log_files=(".a", ".b")).run(six(), inserts=2)
    assert result.path.startswith(f"p0/.3f2a-0_{BASE}.log.3_5-77-")
    stat = result.stat
    assert (stat.prev_commit, stat.base_file, stat.log_version) == (BASE, "b.parquet", 3)
    assert stat.log_files == (".a", ".b", result.path.removeprefix("p0/"))
    assert (stat.num_inserts, stat.num_update_writes) == (2, 4)
    [marker] = (tmp_path / ".hoodie/.temp").rglob("*.marker.*")
    assert marker.name.endswith(".marker.APPEND")


def test_with_change_data_capture_all_versions_name_the_slice(tmp_path: Path) -> None:
    result = task(tmp_path, captures=True, base_file="b.parquet", log_files=(".a", ".b")).run(six(), inserts=2)
    assert result.path.startswith(f"p0/.3f2a-0_{INSTANT}.log.1_5-77-"), "the file has the commit's name all the same"
    stat = result.stat
    assert (stat.prev_commit, stat.base_file, stat.log_version) == (BASE, "b.parquet", 1)
    assert stat.log_files == (".a", ".b", result.path.removeprefix("p0/"))
    assert stat.cdc_stats == {}
    assert not list(tmp_path.rglob(".*.cdc"))


def test_deletes_of_custom_mergers_keep_their_rows(tmp_path: Path) -> None:
    rules = DeleteRules(marker_field="name", marker="a")
    given = six([0, 1, 2])
    given = WriteRecords(
        given.rows.set_column(3, "name", pa.chunked_array([["a", "a", "x", "b", "b", "b"]])),
        given.keys, given.partition_paths, given.deletes, given.ordering,
    )  # fmt: skip
    result = task(tmp_path, delete_rules=rules).run(given)
    data, deleted = blocks(tmp_path, result.path)
    assert [each["id"] for each in decode_records(data).to_pylist()] == ["k0", "k1", "k3", "k4", "k5"]
    assert decode_delete_block(deleted).keys.to_pylist() == ["k2"], "its row does not say so itself"


def test_large_writes_are_several_blocks(tmp_path: Path) -> None:
    made, given = task(tmp_path), six()
    four_rows = 4 * (given.rows.nbytes // 6 + 1)
    made = replace(made, facts=replace(made.facts, file=FileSettings(log_block_bytes=four_rows)))
    result = made.run(given, np.arange(6))
    first, second = blocks(tmp_path, result.path)
    assert (positions(first), positions(second)) == ([0, 1, 2, 3], [4, 5])
    numbers = [each["_hoodie_commit_seqno"] for block in (first, second) for each in decode_records(block).to_pylist()]
    assert len(set(numbers)) == 6


def test_blocks_are_as_small_as_asked(tmp_path: Path) -> None:
    six_rows = six()
    most = six_rows.rows.nbytes // 3 + 2
    made = task(tmp_path)
    made = replace(made, facts=replace(made.facts, file=FileSettings(log_block_bytes=most)))
    found = blocks(tmp_path, made.run(six_rows).path)
    assert [decode_records(each).num_rows for each in found] == [2, 2, 2]


def test_only_deletes_without_rows(tmp_path: Path) -> None:
    whole = six(range(6))
    bare = WriteRecords(pa.table({}), whole.keys, whole.partition_paths, whole.deletes)
    result = task(tmp_path).run(bare)
    [deleted] = blocks(tmp_path, result.path)
    assert list(decode_delete_block(deleted).values) == [None] * 6
    assert result.stat.num_deletes == 6


def test_a_task_that_outlives_its_commit_leaves_nothing(tmp_path: Path) -> None:
    doing = task(tmp_path)
    undo = Markers(doing.facts.files, INSTANT).remove_all
    finished = pytest.raises(ConflictError, match="finished or taken back")
    with meeting_request(writes(r"\.marker\."), after=undo), finished:
        doing.run(six())
    assert not list(tmp_path.rglob(".*.log.*"))


def test_rows_must_have_all_columns(tmp_path: Path) -> None:
    given = six()
    short = WriteRecords(given.rows.drop_columns(["name"]), given.keys, given.partition_paths)
    with pytest.raises(InvalidTableError, match="lack a column") as caught:
        task(tmp_path).run(short)
    assert caught.value.where["column"] == "name"
    assert caught.value.where["file_group"] == "3f2a-0"


def test_tasks_travel(tmp_path: Path) -> None:
    doing = task(tmp_path)
    assert pickle.loads(pickle.dumps(doing)) == doing
    assert len(pickle.dumps(doing)) < 16_384
    assert HoodieTable.open(tmp_path).timeline.last == doing.facts.inflight
