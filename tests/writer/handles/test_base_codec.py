"""New base files have the codec of the table's own, so that whoever reads the table still can; options come first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

CODEC = "hoodie.parquet.compression.codec"


def codecs(base: Path) -> list[str]:
    """Codecs of base files by time."""
    files = [path for path in base.rglob("*.parquet") if ".hoodie" not in path.parts]
    files.sort(key=lambda path: path.stem.rsplit("_", 1)[1])
    return [pq.ParquetFile(path).metadata.row_group(0).column(0).compression for path in files]


def written(base: Path, kind: Kind, **options: Any) -> HoodieTable:
    table = HoodieTable.open(kind.create(base))
    table.insert([row(0), row(2)], options={**QUICK, **options})
    return table


@pytest.mark.parametrize("mor", [True, False])
@pytest.mark.parametrize("version", [9, 6])
def test_a_new_table_has_a_codec_that_every_engine_reads(version: int, mor: bool, tmp_path: Path) -> None:
    table = written(tmp_path, Kind(version, mor))
    table.upsert([row(0, 2), row(4)], options=QUICK)
    table.compact(options=QUICK) if mor else None
    assert {*codecs(tmp_path)} == {"SNAPPY"}


@pytest.mark.parametrize("codec", ["gzip", "zstd", "uncompressed"])
@pytest.mark.parametrize("mor", [True, False])
def test_files_follow_the_newest_one(mor: bool, codec: str, tmp_path: Path) -> None:
    table = written(tmp_path, Kind(9, mor), **{CODEC: codec})
    table.upsert([row(0, 2), row(4)], options=QUICK)
    table.bulk_insert([row(6)], options=QUICK)
    table.compact(options=QUICK) if mor else None
    assert {*codecs(tmp_path)} == {codec.upper()}
    table.insert([row(8)], options={**QUICK, CODEC: "snappy", "hoodie.parquet.small.file.limit": 0})
    table.insert([row(10)], options={**QUICK, "hoodie.parquet.small.file.limit": 0})
    assert codecs(tmp_path)[-2:] == ["SNAPPY", "SNAPPY"]


def test_commits_of_logs_do_not_hide_it(tmp_path: Path) -> None:
    table = written(tmp_path, Kind(9, True), **{CODEC: "gzip"})
    for ts in range(2, 8):
        table.upsert([row(0, ts)], options=QUICK)
    table.insert([row(12)], options=QUICK)
    assert codecs(tmp_path) == ["GZIP", "GZIP"]


def test_a_table_of_java_keeps_javas(corpus_copy: Callable[[str], Path]) -> None:
    base = Path(corpus_copy("basic_mor_v9_part"))
    before = codecs(base)
    HoodieTable.open(base).compact(options={**QUICK, "hoodie.metadata.mode": "disable"})
    assert {*before} == {*codecs(base)} == {"GZIP"}
    assert len(codecs(base)) > len(before)
