"""Dropping what a build of Java left that ended in an error, as its CREATE INDEX does over a custom merge mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.container_writer import write_single
from hoodie_py.formats.metadata_table.index_definitions import define_expression_index
from hoodie_py.writer.metadata_table.definitions_file import write_definition
from tests.writer.compaction_tables import QUICK
from tests.writer.metadata_build.indexed_tables import make_table
from tests.writer.written_tables import Kind, contents, row

STATS = {**QUICK, "hoodie.metadata.index.column.stats.enable": "true"}
_TEXT = ["null", {"type": "string", "avro.java.string": "String"}]
_INFO = {
    "type": "record",
    "name": "HoodieIndexPartitionInfo",
    "fields": [
        {"name": "version", "type": ["int", "null"], "default": 1},
        {"name": "metadataPartitionPath", "type": _TEXT, "default": None},
        {"name": "indexUptoInstant", "type": _TEXT, "default": None},
    ],
}
PLAN = {
    "type": "record",
    "name": "HoodieIndexPlan",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        {"name": "version", "type": ["int", "null"], "default": 1},
        {"name": "indexPartitionInfos", "type": ["null", {"type": "array", "items": _INFO}], "default": None},
    ],
}


def leave_build(base: Path, partition: str, content: bytes | None = None) -> None:
    """Leave the instant of a build of Java that did not complete."""
    folder = base / ".hoodie/timeline"
    time = int(max(each.name for each in folder.iterdir() if each.is_file())[:17]) + 1
    info = {"version": 1, "metadataPartitionPath": partition, "indexUptoInstant": str(time - 1)}
    plan = write_single({"version": 1, "indexPartitionInfos": [info]}, PLAN)
    (folder / f"{time}.indexing.requested").write_bytes(plan if content is None else content)
    (folder / f"{time}.indexing.inflight").write_bytes(b"")


def make(base: Path) -> HoodieTable:
    table = make_table(Kind(8, True), base)
    table.index.build("column_stats", options=QUICK)
    return table


@pytest.mark.parametrize("name", ["expr_index_sub", "sub"])
def test_what_a_failed_build_of_java_left_can_be_dropped(name: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    leave_build(tmp_path / "t", "expr_index_sub")
    table = HoodieTable.open(tmp_path / "t")
    with pytest.raises(UnsupportedFeatureError, match=r"an index is being built.*drop the index"):
        table.upsert([row(50)], options=QUICK)
    with pytest.raises(ConflictError, match=r"drop that index.*shows which it is"):
        table.index.build("record_index", options=QUICK)
    assert {each.name: each.state for each in table.index.show()}["expr_index_sub"] == "unfinished"
    assert table.index.drop(name, options=QUICK) == ("expr_index_sub",)
    assert not list((tmp_path / "t/.hoodie/timeline").glob("*.indexing.*"))
    table.upsert([row(50)], options=QUICK)
    table.index.build("record_index", options=QUICK)
    assert table.verify().is_right, str(table.verify())
    assert "k50" in contents(table)


def test_a_definition_that_is_left_is_dropped(tmp_path: Path) -> None:
    """From it every later Java write builds the index again, and fails again."""
    table = make(tmp_path / "t")
    definition = define_expression_index("expr_index_sub", "column_stats", "name", {"expr": "substring"}, 8)
    write_definition(table._snapshot.files, table.config, definition)
    assert {each.name: each.state for each in table.index.show()}["expr_index_sub"] == "defined"
    assert table.index.drop("sub", options=QUICK) == ("expr_index_sub",)
    assert [each.name for each in table.index.show()] == ["column_stats", "files"]
    with pytest.raises(InvalidQueryError, match=r"no index 'sub'. It has column_stats, files"):
        table.index.drop("sub", options=QUICK)


@pytest.mark.parametrize("content", [None, b"", b"torn"])
def test_without_its_metadata_table_a_table_has_no_builds_left(content: bytes | None, tmp_path: Path) -> None:
    make(tmp_path / "t")
    leave_build(tmp_path / "t", "expr_index_sub", content)
    table = HoodieTable.open(tmp_path / "t")
    assert "files" in table.index.drop("files", options=QUICK)
    table.upsert([row(50)], options=STATS)
    assert table.config.metadata_partitions == ("column_stats", "files")
    assert table.verify().is_right, str(table.verify())


@pytest.mark.parametrize("partition", ["../../p0", "a/b", ".hoodie", ""])
def test_a_plan_cannot_name_other_folders(partition: str, tmp_path: Path) -> None:
    make(tmp_path / "t")
    leave_build(tmp_path / "t", partition)
    table = HoodieTable.open(tmp_path / "t")
    assert [each.name for each in table.index.show()] == ["column_stats", "files"]
    with pytest.raises(InvalidQueryError, match="has no index"):
        table.index.drop(partition, options=QUICK)
    table.index.drop("files", options=QUICK)
    assert len(contents(table)) == 11
