"""Grown tables hold every row as often as they should, and are sound tables."""

from __future__ import annotations

import base64
import io
import struct
from collections import Counter
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from tests.benchmarks.base_copies import open_filter
from tests.benchmarks.bench_tables import KEY_SHAPES, BenchTable, TablesAbsentError, bench_table
from tests.benchmarks.checksums import differences, sums_of
from tests.benchmarks.commit_copies import copy_stats
from tests.benchmarks.grow import copied_id, data_files, grow
from tests.benchmarks.rekey import KeyShape

SMALL = "many_row_groups_mor_v9"
SMALL_KEYS = KeyShape("k", "[0-9]{5}", 6)
BY_KEYS = {"hoodie.merge.use.record.positions": "false"}


def rows_without(table: pa.Table, *names: str) -> Counter[str]:
    """Rows as text, without some columns and the meta columns."""
    kept = [name for name in table.column_names if not name.startswith("_hoodie") and name not in names]
    return Counter(map(str, table.select(kept).to_pylist()))


def key_column(path: Path) -> str:
    (name,) = HoodieTable.open(path).config.record_key_fields
    return name


@pytest.mark.parametrize("options", [{}, BY_KEYS], ids=["positions", "keys"])
def test_groups_repeat_every_row_under_other_keys(corpus, tmp_path, options) -> None:
    source = corpus(SMALL)
    grow(source, tmp_path / "grown", SMALL_KEYS, groups=3)
    key = key_column(source)
    small = HoodieTable.open(source).scan().to_arrow()
    grown = HoodieTable.open(tmp_path / "grown").scan(integrity="strict", options=options).to_arrow()
    once = rows_without(small, key)
    assert rows_without(grown, key) == Counter({row: 3 * count for row, count in once.items()})
    assert pc.count_distinct(grown[key]).as_py() == grown.num_rows
    assert grown[key].equals(grown["_hoodie_record_key"])


@pytest.mark.parametrize("options", [{}, BY_KEYS], ids=["positions", "keys"])
def test_bases_add_the_base_rows_once_more_for_each(corpus, tmp_path, options) -> None:
    source = corpus(SMALL)
    grow(source, tmp_path / "grown", SMALL_KEYS, bases=3)
    key = key_column(source)
    wanted = rows_without(HoodieTable.open(source).scan().to_arrow(), key)
    for row, count in rows_without(HoodieTable.open(source).scan(query_type="read_optimized").to_arrow(), key).items():
        wanted[row] += 2 * count
    grown = HoodieTable.open(tmp_path / "grown").scan(integrity="strict", options=options).to_arrow()
    assert rows_without(grown, key) == wanted
    assert pc.count_distinct(grown[key]).as_py() == grown.num_rows


def test_log_files_of_a_copy_differ_in_keys_and_names_only(corpus, tmp_path) -> None:
    source = corpus(SMALL)
    grow(source, tmp_path, SMALL_KEYS, groups=2)
    for file in data_files(source):
        if file.is_log:
            name = file.path.name.replace(file.file_id, copied_id(file.file_id, 1))
            copy = (tmp_path / file.path.relative_to(source)).with_name(name)
            assert copy.stat().st_size == file.path.stat().st_size
            assert copy.read_bytes() != file.path.read_bytes()


def test_keys_of_copies_are_distinct_and_run_out() -> None:
    shape = KeyShape("k", "[0-9]", 2)
    assert len({shape.marked(copy) for copy in range(36)}) == 36
    with pytest.raises(ValueError, match="no room"):
        shape.marked(36)


def test_keys_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="not all keys"):
        SMALL_KEYS.rekey_column(pa.chunked_array([["k00001", "k1"]]), 1)


def test_a_log_whose_keys_are_not_found_is_refused(corpus) -> None:
    log = next(file for file in data_files(corpus(SMALL)) if file.is_log)
    with pytest.raises(ValueError, match="0 keys found"):
        KeyShape("z", "[0-9]{5}", 6).rekey_log(log.path.read_bytes(), 1)


def test_file_ids_that_would_meet_are_refused(corpus, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tests.benchmarks.grow.data_files", lambda _: iter(()))
    monkeypatch.setattr("tests.benchmarks.grow.copied_id", lambda *_: "same")
    from tests.benchmarks.grow import _check_ids

    with pytest.raises(ValueError, match="same file id"):
        _check_ids({"0001-a", "0002-a"}, 2)


def test_an_opened_bloom_filter_has_all_bits_and_the_same_size() -> None:
    head = struct.pack(">iibi", -1, 30, 1, 20)
    shut, wide = head + b"\1\0\2", head + b"\xff\xff\xff"
    assert base64.b64decode(open_filter(base64.b64encode(shut), dynamic=False)) == wide
    rows = head + struct.pack(">iii", 5, 0, 2)
    assert base64.b64decode(open_filter(base64.b64encode(rows + 2 * shut), dynamic=True)) == rows + 2 * wide
    for data, dynamic in ((shut, True), (rows + shut, True), (rows + shut, False), (shut + b"\0", False)):
        with pytest.raises(ValueError, match="not a bloom filter"):
            open_filter(base64.b64encode(data), dynamic)


def test_commits_name_the_copies(corpus, tmp_path) -> None:
    source = corpus(SMALL)
    grow(source, tmp_path, SMALL_KEYS, groups=2, bases=2)
    paths = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")}
    named = set()
    for commit in (tmp_path / ".hoodie" / "timeline").glob("*_*commit"):
        (found,) = fastavro.reader(io.BytesIO(commit.read_bytes()))
        for stats in found["partitionToWriteStats"].values():
            for stat in stats:
                assert (tmp_path / stat["path"]).stat().st_size == stat["fileSizeInBytes"]
                named.add(stat["path"])
                if stat["path"].endswith(".parquet"):
                    assert pq.read_metadata(tmp_path / stat["path"]).num_rows == stat["numWrites"]
    assert paths <= named


def test_stats_of_one_copy_are_the_same_commit(corpus) -> None:
    commit = next((corpus(SMALL) / ".hoodie" / "timeline").glob("*_*commit"))
    (before,) = fastavro.reader(io.BytesIO(commit.read_bytes()))
    (after,) = fastavro.reader(io.BytesIO(copy_stats(commit.read_bytes(), lambda old: [old], {})))
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KEY_SHAPES))
def test_sums_of_a_bench_table_scale(name, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    try:
        table: BenchTable = bench_table(name, groups=2, bases=2)
    except TablesAbsentError as absent:
        pytest.skip(f"NOT TESTED: {absent}")
    found = sums_of(name, HoodieTable.open(table.path).scan().to_batches())
    assert found.keys() == table.expected.keys()
    assert differences(found, table.expected) == []
