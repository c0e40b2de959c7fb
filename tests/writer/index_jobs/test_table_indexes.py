"""Dropping what a build of Java left that ended in an error, as its CREATE INDEX does over a custom merge mode.

A write whose options switch indexes on builds those that the table lacks, as Java does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, HoodieWarning, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.indexes.definitions import define_expression_index
from hoodie_py.writer.indexes.metadata_table import write_definition
from tests.writer.compaction_tables import QUICK
from tests.writer.index_jobs.indexed_tables import make_table
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


STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (Kind(9, True), {"hoodie.metadata.enable": "true"}, ("files",)),
        (Kind(9, True), STATISTICS, ("column_stats", "files", "partition_stats")),
        (Kind(9, True, False), STATISTICS, ("column_stats", "files")),
        (Kind(6, True), STATISTICS, ("column_stats", "files")),
        (Kind(8, False), {"hoodie.metadata.record.index.enable": "true"}, ("files", "record_index")),
        (Kind(9, True), {"hoodie.metadata.index.bloom.filter.enable": "true"}, ("bloom_filters", "files")),
        (Kind(9, True), {**STATISTICS, "hoodie.metadata.enable": "false"}, ()),
        (Kind(9, True), {}, ()),
    ],
    ids=str,
)  # fmt: skip
def test_a_new_table_gets_what_the_first_write_switches_on(
    kind: Kind, options: dict[str, str], expected: tuple[str, ...], tmp_path: Path
) -> None:
    table = HoodieTable.open(kind.create(tmp_path / "t"))
    table.upsert([row(i) for i in range(4)], options={**QUICK, **options})
    assert table.config.metadata_partitions == expected
    table.upsert([row(i, 2, "b") for i in range(2, 6)], options={**QUICK, **options})
    report = table.verify()
    assert report.is_right, str(report)
    assert [part.name for part in report.parts] == ["data", *expected]


def test_record_and_secondary_index_come_with_a_write_of_an_old_table(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True).create(tmp_path / "t"))
    table.upsert([row(i) for i in range(4)], options=QUICK)
    options = {
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.metadata.index.secondary.column": "name",
    }
    table.upsert([row(9)], options={**QUICK, **options})
    assert table.config.metadata_partitions == ("files", "record_index", "secondary_index_name")
    assert table.index.show()[1].kind == "partitioned record_index"
    assert table.verify().is_right, str(table.verify())


def test_beside_a_write_of_another_nothing_is_built(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True).create(tmp_path / "t"))
    table.upsert([row(1)], options=QUICK)
    folder = tmp_path / "t" / ".hoodie" / "timeline"
    newest = max(each.name for each in folder.iterdir() if each.is_file())[:17]
    (folder / f"{int(newest) + 1}.deltacommit.requested").write_bytes(b"")
    (folder / f"{int(newest) + 1}.deltacommit.inflight").write_bytes(b"")
    many = {**QUICK, "hoodie.clean.failed.writes.policy": "LAZY", "hoodie.metadata.enable": "true"}
    with pytest.warns(HoodieWarning, match="is not built now; a later write builds it"):
        table.upsert([row(2)], options=many)
    assert table.config.metadata_partitions == ()
