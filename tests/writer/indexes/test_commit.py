"""One delta commit of the metadata table: log files in the file groups that get records.

Records fit the schemas of older metadata tables, or are refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.hfile.blocks import GZIP
from hoodie_py.formats.hfile.reader import HFile
from hoodie_py.formats.indexes.keys import find_file_groups
from hoodie_py.formats.log.blocks import decode_delete_block
from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, iterate_blocks
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.indexes.commit import DeltaCommit, fit_to_schema
from hoodie_py.writer.indexes.index import PartitionRecords
from hoodie_py.writer.indexes.partition_files import PartitionFiles
from tests.writer.compaction_tables import writable

INSTANT, DONE = "20261201000000000", "20261201000000001"
FIRST = ".record-index-{}_00000000000000003.log.1_0-0-0"


class Place:
    """A metadata table with a record index of some file groups, each with the log file that began it."""

    def __init__(self, folder: Path, name: str, groups: list[str]) -> None:
        self.base = writable(name, folder) / ".hoodie/metadata"
        self.index = self.base / "record_index"
        self.index.mkdir()
        for group in groups:
            (self.index / FIRST.format(group)).write_bytes(b"")
        snapshot = open_snapshot(str(self.base))
        self.files, self.config = snapshot.files, snapshot.config

    def open(self) -> DeltaCommit:
        schema = PartitionFiles(self.files, self.config, "files").read_schema()
        assert schema is not None
        return DeltaCommit(self.files, self.config, INSTANT, schema)

    def write(self, records: PartitionRecords) -> DeltaCommit:
        commit = self.open()
        commit.begin()
        commit.write([(records, PartitionFiles(self.files, self.config, records.partition))])
        commit.complete(DONE)
        return commit

    def read(self) -> dict[str, tuple[list[str], list[str]]]:
        """Keys of records, and deleted keys, by name of the log file."""
        found = {}
        for path in sorted(self.index.glob(".record*")):
            blocks = [each for each in iterate_blocks(path.read_bytes()) if isinstance(each, LogBlock)]
            assert all(each.headers[HeaderKey.INSTANT_TIME] == INSTANT for each in blocks)
            keys = [key for each in blocks if each.type is BlockType.HFILE_DATA for key in read_keys(each)]
            gone = [key for each in blocks if each.type is BlockType.DELETE for key in deleted(each)]
            if blocks:
                found[path.name] = keys, gone
        return found


def read_keys(block: LogBlock) -> list[str]:
    hfile = HFile.from_bytes(block.content)
    assert hfile.trailer.codec == GZIP
    assert hfile.schema_text == block.schema_text
    return [key.decode() for key, _ in hfile.iterate_entries()]


def deleted(block: LogBlock) -> list[str]:
    return list(decode_delete_block(block).keys.to_pylist())


def rows(*keys: str) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.string()), "type": pa.array([5] * len(keys), pa.int32())})


OTHER = '{"type": "record", "name": "Other", "fields": [{"name": "key", "type": "string"}]}'
TABLES = ["mdt_files_mor_v9", "old15_metadata_mor"]


@pytest.mark.parametrize("name", TABLES)
def test_keys_go_to_the_group_of_their_hash(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path, name, ["0001-0", "0000-0", "0002-0"])
    keys = [f"k{number}" for number in range(9)]
    place.write(PartitionRecords("record_index", rows(*keys[:6]), pa.array(keys[6:])))
    numbers = find_file_groups(pa.array(keys), 3)
    found = place.read()
    assert len(found) == len(set(numbers.tolist()))
    for file, (new, gone) in found.items():
        number = int(file.split("-")[2])
        assert new == [key for key, group in zip(keys[:6], numbers[:6], strict=True) if group == number]
        assert gone == [key for key, group in zip(keys[6:], numbers[6:], strict=True) if group == number]
    table = HoodieTable.open(place.base)
    instant = table.timeline.find(INSTANT)
    assert instant is not None
    stats = list(table._snapshot.timeline.read_metadata(instant).iterate_stats())
    assert {each.file_name: (each.num_writes, each.num_deletes) for each in stats} == {
        file: (len(new), len(gone)) for file, (new, gone) in found.items()
    }
    for each in stats:
        assert (place.base / str(each.path)).stat().st_size == each.file_size_in_bytes
        assert each.log_version == (1 if place.config.has_logs_named_by_commit else 2)
        assert each.prev_commit == (INSTANT if place.config.has_logs_named_by_commit else "00000000000000003")


def test_a_group_with_deletes_alone_has_a_delete_block_alone(tmp_path: Path) -> None:
    place = Place(tmp_path, "mdt_files_mor_v9", ["0000-0"])
    place.write(PartitionRecords("record_index", rows(), pa.array(["a", "b"])))
    [path] = [path for path in place.index.glob(".record*") if INSTANT in path.name]
    [block] = iterate_blocks(path.read_bytes())
    assert isinstance(block, LogBlock)
    assert (block.type, deleted(block)) == (BlockType.DELETE, ["a", "b"])
    assert block.schema_text


def test_new_groups_are_begun_with_an_empty_file(tmp_path: Path) -> None:
    place = Place(tmp_path, "mdt_files_mor_v9", ["p0-0000-0"])
    groups = ["record-index-p0-0000-0", "record-index-p9-0000-0", "record-index-p9-0001-0"]
    commit = place.write(PartitionRecords("record_index", rows("a", "b"), None, np.array([1, 0]), groups))
    found = place.read()
    assert found.pop(f".record-index-p9-0000-0_{INSTANT}.log.1_0-0-0") == ([], [])
    assert found.pop(f".record-index-p9-0001-0_{INSTANT}.log.1_0-0-0") == ([], [])
    assert {name.split("_")[0]: keys for name, (keys, _) in found.items()} == {
        ".record-index-p0-0000-0": ["b"],
        ".record-index-p9-0000-0": ["a"],
    }
    assert len(commit.own) == 5


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, "mdt_files_mor_v9", ["0000-0"])
    with pytest.raises(InvalidTableError, match="twice"):
        place.write(PartitionRecords("record_index", rows("a", "a")))
    with pytest.raises(ConflictError):
        place.open().begin()
    with pytest.raises(UnsupportedFeatureError):
        DeltaCommit(place.files, place.config, INSTANT, OTHER)


def test_fields_without_values_are_left_out() -> None:
    inner = pa.array(
        [{"a": 1, "b": None}, None, {"a": 2, "b": None}], pa.struct([("a", pa.int32()), ("b", pa.int32())])
    )
    array = pa.StructArray.from_arrays([inner, pa.array([True, False, True])], names=["s", "isTightBound"])
    found = fit_to_schema(array, pa.struct([("s", pa.struct([("a", pa.int32())]))]))
    assert found.to_pylist() == [{"s": {"a": 1}}, {"s": None}, {"s": {"a": 2}}]


def test_fields_with_values_are_refused() -> None:
    array = pa.array([{"a": 1, "b": 2}])
    with pytest.raises(UnsupportedFeatureError, match="no place"):
        fit_to_schema(array, pa.struct([("a", pa.int64())]))


def test_other_arrays_stay() -> None:
    array = pa.array([1])
    assert fit_to_schema(array, pa.int64()) is array
