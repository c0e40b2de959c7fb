"""Tables of the versions of Hudi 0.6 to 0.13, made of ones of version 6 by what those releases wrote otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.properties import parse_properties
from tests.writer.compaction_tables import QUICK, copied, rows
from tests.writer.written_tables import Kind, row

_SINCE = {
    "hoodie.table.recordkey.fields": 2,
    "hoodie.table.partition.fields": 2,
    "hoodie.table.base.file.format": 2,
    "hoodie.table.keygenerator.type": 9,
    "hoodie.table.keygenerator.class": 3,
    "hoodie.datasource.write.hive_style_partitioning": 3,
    "hoodie.datasource.write.partitionpath.urlencode": 3,
    "hoodie.table.checksum": 3,
    "hoodie.table.timeline.timezone": 4,
    "hoodie.table.metadata.partitions": 4,
}
KEYS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "part"}


def make_old(base: Path, version: int) -> HoodieTable:
    """Write a table's properties as releases with a table version did."""
    path = base / ".hoodie/hoodie.properties"
    keygen = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}
    stored = parse_properties(path.read_bytes()) | {"hoodie.table.version": str(version)} | keygen
    kept = {key: text for key, text in stored.items() if _SINCE.get(key, 0) <= version}
    path.write_text("#Properties\n" + "".join(f"{key}={text}\n" for key, text in kept.items()))
    return HoodieTable.open(base)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = Kind(6, True).create(tmp_path_factory.mktemp("old") / "t")
    table = HoodieTable.open(base)
    options = {**QUICK, "hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    table.upsert([row(number) for number in range(6)], options)
    table.upsert([row(1, 2), row(2, 2)], options)
    return base


@pytest.mark.parametrize("version", [1, 2, 3, 5])
def test_a_table_of_an_old_version_is_written_again(version: int, base: Path, tmp_path: Path) -> None:
    before = rows(HoodieTable.open(base))
    table = make_old(copied(base, tmp_path / "t"), version)
    planned = table.timeline.select_writes().instants[0].request_time
    copy = tmp_path / "t/.hoodie/.aux" / f"{planned}.compaction.requested"
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(b"plan")
    assert rows(table) == before
    with pytest.raises(UnsupportedFeatureError, match=f"version {version}, which is only read"):
        table.upsert([row(1)], QUICK)
    to = 9 if version == 3 else 6
    if version == 1:
        with pytest.raises(InvalidQueryError, match="does not tell its record key"):
            table.upgrade(to, options=QUICK)
    table.upgrade(to, options={**QUICK, **(KEYS if version == 1 else {})})
    assert table.config.version == to
    assert not copy.exists()
    assert rows(table) == before
    assert table.config.metadata_partitions == (("column_stats", "files") if version > 3 else ())
    assert (tmp_path / "t/.hoodie/metadata").exists() == (version > 3)
    assert table.config.key_generator == "SIMPLE"
    table.upsert([row(1, 9), row(20, 9)], QUICK)
    assert table.verify().is_right
    assert table.scan(filter="ts = 9").to_arrow().num_rows == 2


def test_partition_paths_tell_how_they_are_spelt(tmp_path: Path) -> None:
    properties = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    base = Kind(6, False).create(tmp_path / "t", properties=properties)
    HoodieTable.open(base).upsert([row(1)], QUICK)
    table = make_old(base, 2)
    table.upgrade(6, options=QUICK)
    assert table.config.hive_style_partitioning
    table.upsert([row(1, 2)], QUICK)
    assert table.scan().to_arrow().num_rows == 1


def test_a_partition_default_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    base = Kind(6, False).create(tmp_path / "t")
    HoodieTable.open(base).upsert([{**row(1), "part": "default"}], QUICK)
    table = make_old(base, 4)
    with pytest.raises(UnsupportedFeatureError, match="with a partition 'default'"):
        table.upgrade(6)
    assert HoodieTable.open(base).config.version == 4
    table.upgrade(6, options={"hoodie.skip.default.partition.validation": "true"})
    assert table.config.version == 6
