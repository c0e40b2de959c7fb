"""Reading a file group as records: order, operations, look-ups, rows of a write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.log.framing import HeaderKey
from hoodie_py.formats.names import LogFileName
from hoodie_py.reader.file_group import needs_merge
from hoodie_py.reader.file_slice import BaseFile, BlockRules, FileSlice, LogFile
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.reader.record.record import DEFAULT_ORDERING, HoodieOperation
from hoodie_py.reader.record_reader import BufferKind, IncomingDeletes, IncomingRows, MergeReader, choose_buffer_kind
from tests.formats.log_writer import data_block, delete_block
from tests.reader.merge_cases.merge_rules import MergeRule, merge_rule

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "v", "type": "long"},
        {"name": "_hoodie_is_deleted", "type": ["null", "boolean"], "default": None},
    ],
}
PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.populate.meta.fields": "false",
    "hoodie.table.recordkey.fields": "id",
}


def record(key: str, value: int, deleted: bool | None = None) -> dict[str, Any]:
    return {"id": key, "v": value, "_hoodie_is_deleted": deleted}


class Group:
    """A file group on disk."""

    def __init__(self, folder: Path, base: Sequence[str], *blocks: bytes) -> None:
        rows = pa.Table.from_pylist([record(key, i) for i, key in enumerate(base)], SCHEMA)
        pq.write_table(rows, folder / "base.parquet", row_group_size=3)
        name = LogFileName("f", "002", 1, "0-0-0")
        (folder / name.name).write_bytes(b"".join(blocks))
        logs = (LogFile(name.name, 0, name),) if blocks else ()
        base_file = BaseFile("base.parquet", (folder / "base.parquet").stat().st_size, "001", "f") if base else None
        self.file_slice = FileSlice("", "f", "001", base_file, logs)
        config = TableConfig.from_properties(PROPERTIES)
        self.info = ReadInfo(TableFiles.open(str(folder)), config, SCHEMA, {}, BlockRules())

    def reader(self, **more: Any) -> MergeReader:
        return MergeReader(self.file_slice, self.info, **more)


def seen(reader: MergeReader, records: Any) -> list[tuple[str, Any, str | None]]:
    context = reader.context
    return [(r.record_key, context.get_value(r, "v"), r.operation.value if r.operation else None) for r in records]


@pytest.mark.parametrize("batch_rows", [1, 2, 1000])
def test_base_rows_come_in_file_order_whatever_the_batches(tmp_path: Path, batch_rows: int) -> None:
    keys = [f"k{i}" for i in range(20)]
    updates = data_block("002", AVRO, [record("k3", 30), record("k17", 170), record("new", 1)])
    group = Group(tmp_path, keys, updates, delete_block("003", [("k5", "", None)]))
    reader = group.reader(options=ReadOptions(batch_rows=batch_rows))
    changed = {"k3": (30, "U"), "k17": (170, "U")}
    expected = [(key, *changed.get(key, (i, None))) for i, key in enumerate(keys) if key != "k5"]
    assert seen(reader, reader.buffered_records()) == [*expected, ("new", 1, "I")]


def test_deletes_come_in_their_place_when_asked_for(tmp_path: Path) -> None:
    flagged = data_block("002", AVRO, [record("b", 9, deleted=True)])
    group = Group(tmp_path, "abc", flagged, delete_block("003", [("z", "", None)]))
    reader = group.reader()
    assert seen(reader, reader.buffered_records(emit_deletes=True)) == [
        ("a", 0, None),
        ("b", 9, "D"),
        ("c", 2, None),
        ("z", None, "D"),
    ]


def test_sorted_output_follows_javas_string_order(tmp_path: Path) -> None:
    beyond_bmp, private = "\U0001f600", "\ue000"  # by code point the first is greater, by UTF-16 units the second
    rows = [record(beyond_bmp, 1), record("a", 2), record("~", 3)]
    group = Group(tmp_path, ["b", private], data_block("002", AVRO, rows))
    reader = group.reader(sort_output=True)
    assert [key for key, _, _ in seen(reader, reader.buffered_records())] == ["a", "b", "~", beyond_bmp, private]


def test_look_ups_read_the_log_once_and_meet_repeated_keys(tmp_path: Path) -> None:
    rows = [record("a", 10), record("x", 11), record("y", 12)]
    group = Group(tmp_path, ["a", "b", "a", "c"], data_block("002", AVRO, rows))
    reader = group.reader()
    base = [("a", 10, "U"), ("b", 1, None), ("a", 10, "U"), ("c", 3, None)]
    assert seen(reader, reader.look_up(["a", "x"])) == [*base, ("x", 11, "I")]
    assert seen(reader, reader.look_up(["y"])) == [*base, ("y", 12, "I")]
    assert reader.stats.log_records == 3
    with pytest.raises(InvalidQueryError):
        reader.look_up([])


def test_rows_of_a_write_take_the_place_of_the_log(tmp_path: Path) -> None:
    group = Group(tmp_path, "abc")
    rows = pa.RecordBatch.from_pylist([record("a", 10), record("n", 11), record("c", 12, deleted=True)], SCHEMA)
    reader = group.reader(incoming=[IncomingRows(rows), IncomingDeletes(pa.array(["b"]), [DEFAULT_ORDERING])])
    assert seen(reader, reader.buffered_records()) == [("a", 10, "U"), ("n", 11, "I")]
    batches = pa.Table.from_batches(group.reader(incoming=[IncomingRows(rows)]).to_batches())
    assert sorted(batches["id"].to_pylist()) == ["a", "b", "n"]


def test_a_writers_update_before_stays_one(tmp_path: Path) -> None:
    codes = [HoodieOperation.UPDATE_BEFORE.code, HoodieOperation.UPDATE_AFTER.code]
    rows = pa.RecordBatch.from_pylist([record("x", 1, deleted=True), record("y", 2, deleted=True)], SCHEMA)
    reader = Group(tmp_path, "").reader(incoming=[IncomingRows(rows, codes)])
    found = sorted(seen(reader, reader.buffered_records(emit_deletes=True)))
    assert found == [("x", 1, "-U"), ("y", 2, "D")]


def test_unmerged_rows_have_no_operation_and_deletes_do_nothing(tmp_path: Path) -> None:
    flagged = data_block("002", AVRO, [record("a", 9, deleted=True)])
    group = Group(tmp_path, "ab", flagged, delete_block("003", [("b", "", None)]))
    reader = group.reader(options=ReadOptions(options={"hoodie.datasource.merge.type": "SKIP_MERGE"}))
    assert seen(reader, reader.buffered_records()) == [("a", 0, None), ("b", 1, None), ("a", 9, None)]


def test_whether_rows_pair_by_position_is_known(tmp_path: Path) -> None:
    assert Group(tmp_path, "ab").reader().by_position
    headers = {HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "001"}
    without = Group(tmp_path, "ab", data_block("002", AVRO, [record("a", 9)], headers)).reader()
    assert not without.by_position


def test_custom_does_not_look_at_the_partial_update_mode() -> None:
    assert merge_rule(MergeMode.CUSTOM, completes=True) is MergeRule.CUSTOM
    assert merge_rule(MergeMode.CUSTOM, completes=True, payloads=("a.B", "a.B")) is MergeRule.PAYLOAD


@pytest.mark.parametrize("mode", list(MergeMode))
def test_a_partial_block_decides_over_everything(mode: MergeMode) -> None:
    assert merge_rule(mode, completes=True, partial_block=True, payloads=("a.B", "a.B")) is MergeRule.KEEP_VALUES


def test_rows_of_a_write_always_merge() -> None:
    skip = {"hoodie.datasource.merge.type": "Skip_Merge"}
    assert choose_buffer_kind(skip) is BufferKind.UNMERGED
    assert choose_buffer_kind(skip, streaming=True) is BufferKind.KEY
    assert not needs_merge(skip)


def test_an_unknown_merge_type_is_an_error() -> None:
    with pytest.raises(InvalidQueryError, match="nonsense"):
        needs_merge({"hoodie.datasource.merge.type": "nonsense"})
