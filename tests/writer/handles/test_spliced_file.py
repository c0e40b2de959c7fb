"""Row groups that no record touches are copied: the file has the same rows as one that is written anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hoodie_py.formats.parquet.carried_bloom as carried_bloom
import hoodie_py.writer.handles.spliced_file as spliced_file
from hoodie_py import HoodieTable
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY
from hoodie_py.writer.handles.spliced_file import SplicedFile
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("price", pa.float64()),
        ("small", pa.float32()),
        ("name", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("data", pa.binary()),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
ROWS = 2000
OPTIONS = {"hoodie.parquet.block.size": "9000", **QUICK}
STATISTICS = {**OPTIONS, "hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}


def make_row(number: int, ts: int = 1) -> dict[str, Any]:
    return {
        "id": f"k{number:05d}",
        "ts": ts,
        "price": float("nan") if number % 97 == 5 else number * 1.5 + ts,
        "small": None if number % 5 == 0 else float(number),
        "name": f"näme {number % 7}" if number % 3 else None,
        "amount": Decimal(number) / 4 if number % 4 else None,
        "day": date(2026, 1, 1 + number % 28),
        "at": datetime(2026, 1, 1, number % 24, tzinfo=UTC),
        "data": bytes([number % 256, 0, 255]) if number % 6 else None,
        "flag": number % 2 == 0,
        "tags": [f"t{each}" for each in range(number % 4)] if number % 5 else None,
        "st": {"a": number, "b": f"b{number}" if number % 3 else None},
        "counts": [(f"c{each}", each) for each in range(number % 3)],
    }


def make_rows(numbers: list[int], ts: int = 1) -> pa.Table:
    return pa.Table.from_pylist([make_row(each, ts) for each in numbers], SCHEMA)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of one file with many row groups."""
    base = tmp_path_factory.mktemp("made") / "t"
    table = HoodieTable.create(base, SCHEMA, record_key="id", ordering="ts", table_type="COPY_ON_WRITE")
    table.bulk_insert(make_rows(list(range(0, 2 * ROWS, 2))), options=STATISTICS)
    assert count_groups(base) > 8
    return base


@pytest.fixture(autouse=True)
def small_files_carry_their_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried_bloom, "_LEAST_ROWS", 1)
    monkeypatch.setattr(carried_bloom, "_LEAST_SHARE", 0.9)


@contextmanager
def counted_copies(*, copying: bool = True) -> Iterator[list[int]]:
    """Count the row groups of each file that are copied, or let all files be written anew."""
    copied: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        if not copying:
            patch.setattr(spliced_file, "open_spliced_file", lambda *_: None)
        original = SplicedFile.close

        def close(self: SplicedFile) -> Any:
            copied.append(len(self.changing.rows) - len(self.changing.touched))
            return original(self)

        patch.setattr(SplicedFile, "close", close)
        yield copied


def find_file(base: Path) -> Path:
    [slice_] = HoodieTable.open(base).file_slices()
    assert slice_.base_file is not None
    return base / slice_.base_file.path


def count_groups(base: Path) -> int:
    return pq.read_metadata(find_file(base)).num_row_groups


def read_rows(base: Path) -> list[dict[str, Any]]:
    """The rows of the file in its order; of the commit's meta columns only which rows the last commit wrote."""
    path = find_file(base)
    found = pq.read_table(path, partitioning=None).to_pylist()
    last = max(each["_hoodie_commit_time"] for each in found)
    for each in found:
        assert each.pop("_hoodie_file_name") == path.name
        assert each["_hoodie_commit_seqno"].startswith(each["_hoodie_commit_time"])
        each["_hoodie_commit_time"] = each["_hoodie_commit_time"] == last
        each["_hoodie_commit_seqno"] = each["_hoodie_commit_seqno"].partition("_")[2]
        each["price"] = repr(each["price"])
    return found


def check_file(base: Path) -> None:
    """Every reader finds the same rows, and the footer's facts are right."""
    path = find_file(base)
    rows = pq.read_table(path, partitioning=None)
    metadata = pq.read_metadata(path)
    assert metadata.num_rows == rows.num_rows
    ids = rows["id"].combine_chunks()
    key = metadata.schema.names.index("_hoodie_record_key")
    at = 4
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        assert group.num_rows
        bounds = group.column(key).statistics
        here = ids.slice(sum(metadata.row_group(each).num_rows for each in range(number)), group.num_rows).to_pylist()
        assert (bounds.min, bounds.max) == (min(here), max(here))
        for column in range(group.num_columns):
            chunk = group.column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            assert start == at
            assert chunk.has_offset_index
            at += chunk.total_compressed_size
    facts = metadata.metadata or {}
    bloom = BloomFilter.from_text(facts[BLOOM_KEY.encode()].decode(), facts[BLOOM_TYPE_KEY.encode()].decode())
    assert bloom.may_contain(ids).all()
    assert facts[MIN_KEY.encode()].decode() <= min(ids.to_pylist())
    assert facts[MAX_KEY.encode()].decode() >= max(ids.to_pylist())
    wanted = sorted(rows.select(["id", "ts", "name"]).to_pylist(), key=lambda each: each["id"])
    polars = pl.scan_parquet(path).select("id", "ts", "name").sort("id").collect().to_dicts()
    assert polars == wanted
    found = duckdb.sql(f"select id, ts, name from read_parquet('{path}') order by id").fetchall()
    assert found == [tuple(each.values()) for each in wanted]
    some = wanted[len(wanted) // 2]["id"]  # by the statistics and the page index
    assert duckdb.sql(f"select count(*) from read_parquet('{path}') where id = '{some}'").fetchall() == [(1,)]
    assert pl.scan_parquet(path).filter(pl.col("id") == some).collect().height == 1
    assert len(pq.read_table(path, partitioning=None, filters=[("_hoodie_record_key", "=", some)])) == 1


CHANGES = [
    ("upsert", [100]),
    ("upsert", [0]),
    ("upsert", [2 * ROWS - 2]),
    ("upsert", [2 * ROWS + 1]),
    ("upsert", [101]),
    ("upsert", [100, 102, 1001, 3998, 4001, 4003]),
    ("delete", [100]),
    ("delete", list(range(0, 400, 2))),
    ("upsert", list(range(240))),
]


@pytest.mark.parametrize(("operation", "numbers"), CHANGES)
def test_copied_row_groups_have_the_rows_of_the_old_file(
    made: Path, tmp_path: Path, operation: str, numbers: list[int]
) -> None:
    for copying in (True, False):
        base = tmp_path / str(copying)
        shutil.copytree(made, base)
        with counted_copies(copying=copying) as copied:
            getattr(HoodieTable.open(base), operation)(make_rows(numbers, 5), options=STATISTICS)
        assert len(copied) == copying
        assert not copying or copied[0] > 3
        check_file(base)
        report = HoodieTable.open(base).verify()
        assert report.is_right, list(report.findings)
    assert read_rows(tmp_path / "True") == read_rows(tmp_path / "False")


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["upsert", "delete"]), st.integers(0, 2 * ROWS), st.integers(1, 60), st.integers(1, 9)
        ),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_series_of_writes_give_the_same_rows(made: Path, changes: list[tuple[str, int, int, int]]) -> None:
    bases = [made.parent / f"series-{copying}" for copying in (True, False)]
    try:
        for copying, base in zip((True, False), bases, strict=True):
            shutil.copytree(made, base)
            for at, (operation, first, count, step) in enumerate(changes):
                numbers = list(range(first, first + count * step, step))
                with counted_copies(copying=copying):
                    getattr(HoodieTable.open(base), operation)(make_rows(numbers, 5 + at), options=OPTIONS)
        found = [
            sorted(read_rows(base), key=itemgetter("id")) for base in bases
        ]  # rows may move within their row group
        for each in (*found[0], *found[1]):
            each.pop("_hoodie_commit_seqno")
        assert found[0] == found[1]
        check_file(bases[0])
    finally:
        for base in bases:
            shutil.rmtree(base, ignore_errors=True)


def test_new_rows_fill_the_last_row_group(made: Path, tmp_path: Path) -> None:
    base = tmp_path / "t"
    shutil.copytree(made, base)
    before = count_groups(base)
    for number in range(12):
        HoodieTable.open(base).upsert(make_rows([2 * ROWS + 1 + number]), options=OPTIONS)
    assert count_groups(base) <= before + 1
    check_file(base)


@pytest.mark.parametrize(
    "change",
    [
        {"hoodie.parquet.compression.codec": "zstd"},
        {"hoodie.index.bloom.fpp": "0.001"},
        {"hoodie.index.bloom.num_entries": "100000"},
    ],
)
def test_files_that_would_be_written_otherwise_are_written_anew(
    made: Path, tmp_path: Path, change: dict[str, str]
) -> None:
    base = tmp_path / "t"
    shutil.copytree(made, base)
    with counted_copies() as copied:
        HoodieTable.open(base).upsert(make_rows([100], 5), options={**OPTIONS, **change})
    assert not copied
    check_file(base)


def test_columns_that_are_added_or_many_changes_write_the_file_anew(made: Path, tmp_path: Path) -> None:
    base = tmp_path / "t"
    shutil.copytree(made, base)
    with counted_copies() as copied:
        HoodieTable.open(base).upsert(make_rows(list(range(0, 2 * ROWS, 40)), 5), options=OPTIONS)
        assert not copied
        wider = make_rows([100], 6).append_column("extra", pa.array([1], pa.int64()))
        HoodieTable.open(base).upsert(wider, options=OPTIONS)
        assert not copied
        HoodieTable.open(base).upsert(wider, options=OPTIONS)
        assert len(copied) == 1
    check_file(base)


def test_every_copy_of_a_repeated_key_is_met_as_in_a_file_that_is_written_anew(tmp_path: Path) -> None:
    found = []
    for copying in (True, False):
        base = tmp_path / str(copying)
        table = HoodieTable.create(base, SCHEMA, record_key="id", ordering="ts", table_type="COPY_ON_WRITE")
        table.bulk_insert(make_rows([*range(ROWS), 7]), options=OPTIONS)
        with counted_copies(copying=copying) as copied:
            table.upsert(make_rows([7], 5), options=OPTIONS)
        assert len(copied) == copying
        found.append(sorted((each["id"], each["ts"]) for each in read_rows(base)))
    assert found[0] == found[1]


def test_row_groups_are_copied_in_stores_without_local_files() -> None:
    place = "memory://spliced/t"
    table = HoodieTable.create(place, SCHEMA, record_key="id", ordering="ts", table_type="COPY_ON_WRITE")
    table.bulk_insert(make_rows(list(range(ROWS))), options=OPTIONS)
    before = {each["id"]: each for each in table.scan(columns=["id", "ts", "tags"]).to_arrow().to_pylist()}
    with counted_copies() as copied:
        table.upsert(make_rows([9, 1000], 5), options=OPTIONS)
        table.delete(make_rows([10], 5), options=OPTIONS)
    assert len(copied) == 2
    for key in ("k00009", "k01000"):
        before[key]["ts"] = 5
    del before["k00010"]
    assert {each["id"]: each for each in table.scan(columns=["id", "ts", "tags"]).to_arrow().to_pylist()} == before
