"""A write whose options switch indexes on builds those that the table lacks, as Java does."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieWarning
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

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
