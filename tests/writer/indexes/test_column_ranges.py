"""Statistics of columns: the same as Java's for Java's files, and kept by each of our operations."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.indexes.keys import encode_file_names, encode_names, encode_partitions, make_column_keys
from hoodie_py.writer.indexes.column_ranges import list_deleted_keys
from tests.corpus import corpus_names, unpack
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.indexes.statistics_tables import TYPES, check_columns, check_partitions, read_partition, unpacked

INDEXED = ["mdt_all_mor_v6", "mdt_all_mor_v9", "mdt_all_cow_v9", "old15_metadata_mor"]


@pytest.mark.parametrize("name", TYPES)
def test_statistics_of_java_are_the_same(name: str, tmp_path: Path) -> None:
    assert check_columns(unpacked(name, tmp_path), as_java=True) > 90


@pytest.mark.parametrize("name", [name for name in INDEXED if name in corpus_names()])
def test_statistics_of_java_in_reference_tables_are_the_same(name: str, tmp_path: Path) -> None:
    assert check_columns(unpack(name, tmp_path), as_java=True) > 10


@pytest.mark.parametrize("name", TYPES)
def test_each_operation_keeps_them(name: str, tmp_path: Path) -> None:
    base = unpacked(name, tmp_path)
    rows = HoodieTable.open(base).scan().to_arrow()
    some = rows.slice(0, 5).drop_columns([each for each in rows.column_names if each.startswith("_hoodie_")])
    HoodieTable.open(base).upsert(some, options=QUICK)
    gone = set(read_names(base))
    HoodieTable.open(base).delete(some["id"].slice(0, 2).to_pylist(), options=QUICK)
    HoodieTable.open(base).compact(options=QUICK)
    HoodieTable.open(base).upsert(some, options={**QUICK, "hoodie.parquet.small.file.limit": "0"})  # in a new file, too
    assert set(read_names(base)) > gone
    assert check_columns(base, as_java=False) > 90
    if name == "types_mor_v9":
        assert check_partitions(base) == 50


def test_columns_that_came_with_a_write_are_measured_by_the_next_ones(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    HoodieTable.open(base).index.build("column_stats")
    rows = HoodieTable.open(base).scan().to_arrow().slice(0, 2)
    rows = rows.drop_columns([each for each in rows.column_names if each.startswith("_hoodie_")])
    for name in ("new", "newer"):
        rows = rows.append_column(name, pa.array([1, 2]))
        for _ in range(2):
            HoodieTable.open(base).upsert(rows, options=QUICK)
    found = [row["columnName"] for row in read_partition(base, 3).values()]
    assert found.count("new") >= 4
    assert found.count("newer") >= 2
    assert HoodieTable.open(base).verify().is_right


def read_names(base: Path) -> list[str]:
    return [row["fileName"] for row in read_partition(base, 3).values()]


def test_files_that_go_lose_their_records() -> None:
    found = list_deleted_keys({"p": ["f", ".g"], "q": ["h"], "r": []}, ["a", "b"])
    expected = [
        make_column_keys(encode_names([column]), encode_partitions([path]), encode_file_names([name]))[0].as_py()
        for path, name in (("p", "f"), ("p", ".g"), ("q", "h"))
        for column in ("a", "b")
    ]
    assert found.to_pylist() == expected


@pytest.mark.parametrize("name", ["old15_metadata_mor"])
def test_tables_of_older_hudi_keep_them(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = len(read_partition(base, 3))
    HoodieTable.open(base).compact(options=QUICK)
    assert len(read_partition(base, 3)) > before
