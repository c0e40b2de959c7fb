"""The first write of a table, with every index that it switches on: also where it dies half way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieError, InvalidTableError
from hoodie_py.files import TableFiles
from tests.writer.compaction_tables import QUICK, copied
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.index_jobs.indexed_tables import open_on
from tests.writer.written_tables import Kind, contents, row

STATS = {"hoodie.metadata.index.column.stats.enable": "true"}
PARTS = {"hoodie.metadata.index.partition.stats.enable": "true"}
BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}
GLOBAL = {"hoodie.metadata.global.record.level.index.enable": "true",
          "hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}  # fmt: skip
PARTITIONED = {"hoodie.metadata.record.level.index.enable": "true"}
BY_NAME = {"hoodie.metadata.index.secondary.column": "name"}
INDEXES = {
    "files": {"hoodie.metadata.enable": "true"},
    "stats": STATS,
    "blooms": BLOOM,
    "global": GLOBAL,
    "partitioned": PARTITIONED,
    "global-secondary": {**GLOBAL, **BY_NAME},
    "partitioned-secondary": {**PARTITIONED, **BY_NAME},
    "partitioned-stats-secondary": {**STATS, **PARTITIONED, **BY_NAME},
    "partitioned-all": {**STATS, **PARTS, **BLOOM, **PARTITIONED, **BY_NAME},
    "global-all": {**STATS, **PARTS, **BLOOM, **GLOBAL, **BY_NAME},
}
USUAL = ("partitioned", "partitioned-secondary", "global-all")
KINDS = [
    Kind(9, True), Kind(9, False), Kind(8, True), Kind(8, False), Kind(6, True), Kind(6, False), Kind(9, True, False),
]  # fmt: skip
CASES = [
    pytest.param(kind, options, id=f"{kind}-{name}", marks=() if name in USUAL else pytest.mark.thorough)
    for kind in KINDS
    for name, options in INDEXES.items()
    if kind.version > 6 or not name.startswith("partitioned")
]
ROWS = [row(i) for i in range(4)]
BY_INDEX = {"hoodie.index.type": "RECORD_LEVEL_INDEX"}
STRIDE = int(os.environ.get("HOODIE_CRASH_STRIDE", "97"))


def upsert(table: HoodieTable, options: dict[str, str]) -> object:
    return table.upsert(ROWS, options={**QUICK, **options})


def insert(table: HoodieTable, options: dict[str, str]) -> object:
    return table.insert(ROWS, options={**QUICK, **options})


def write_nothing(table: HoodieTable, options: dict[str, str]) -> object:
    return table.upsert(ROWS[:0], options={**QUICK, **options})


def delete(table: HoodieTable, options: dict[str, str]) -> object:
    return table.delete(["k1"], options={**QUICK, **options})


def overwrite(table: HoodieTable, options: dict[str, str]) -> object:
    return table.insert_overwrite_table(ROWS, options={**QUICK, **options})


def check_life(base: Path, options: dict[str, str], rows: dict[str, tuple[int, str]]) -> None:
    """Check a table with some rows, and that later writes, also those that look keys up in the index, keep it right."""
    table = HoodieTable.open(base)
    assert contents(table) == rows
    assert table.verify().is_right, str(table.verify())
    table.upsert([row(i, 2, "b") for i in range(2, 6)], options={**QUICK, **options})
    rows = {**rows, **{f"k{i}": (2, "b") for i in range(2, 6)}}
    if any("record" in name for name in options):
        kind = "RECORD_LEVEL_INDEX" if PARTITIONED.items() <= options.items() else "GLOBAL_RECORD_LEVEL_INDEX"
        table.upsert([row(i, 3, "c") for i in range(5, 8)], options={**QUICK, "hoodie.index.type": kind})
        rows |= {f"k{i}": (3, "c") for i in range(5, 8)}
    assert contents(table) == rows
    assert table.scan(filter="name = 'b'", options={"hoodie.enable.data.skipping": "true"}).count() == sum(
        name == "b" for _, name in rows.values()
    )
    report = table.verify()
    assert report.is_right, str(report)
    assert len(report.parts) == 1 + len(table.config.metadata_partitions)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_the_first_write_keeps_every_index_that_it_switches_on(
    kind: Kind, options: dict[str, str], tmp_path: Path
) -> None:
    base = kind.create(tmp_path / "t")
    upsert(HoodieTable.open(base), options)
    check_life(base, options, {f"k{i}": (1, "a") for i in range(4)})


@pytest.mark.parametrize("write", [insert, write_nothing, delete, overwrite], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", ["partitioned", "partitioned-all", "global-all"])
@pytest.mark.parametrize("kind", [Kind(9, True), pytest.param(Kind(8, False), marks=pytest.mark.thorough)], ids=str)
def test_any_kind_of_first_write_keeps_the_indexes(
    kind: Kind, name: str, write: Callable[[HoodieTable, dict[str, str]], object], tmp_path: Path
) -> None:
    base = kind.create(tmp_path / "t")
    write(HoodieTable.open(base), INDEXES[name])
    check_life(base, INDEXES[name], {} if write in (write_nothing, delete) else {f"k{i}": (1, "a") for i in range(4)})


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(8, False)], ids=str)
def test_an_index_built_over_a_table_without_rows_serves_the_first_write(kind: Kind, tmp_path: Path) -> None:
    base = kind.create(tmp_path / "t")
    table = HoodieTable.open(base)
    table.index.build("record_index", partitioned=True, options=QUICK)
    assert table.verify().is_right, str(table.verify())
    assert table.scan(filter="id = 'k1'", options={"hoodie.enable.data.skipping": "true"}).count() == 0
    table.upsert(ROWS, options={**QUICK, **BY_INDEX})
    check_life(base, PARTITIONED, {f"k{i}": (1, "a") for i in range(4)})


@pytest.mark.filterwarnings("ignore:The write is committed", "ignore:A heartbeat was not removed")
@pytest.mark.parametrize("fault", ["kill before", "kill after", "refuse", "lose answer"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind(9, True), "partitioned-secondary"),
        (Kind(8, False), "partitioned"),
        pytest.param(Kind(9, False), "partitioned-all", marks=pytest.mark.thorough),
        pytest.param(Kind(6, True), "global", marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_a_first_write_that_dies_leaves_a_table_that_can_be_written(
    kind: Kind, name: str, fault: str, tmp_path: Path
) -> None:
    options = INDEXES[name]
    start = kind.create(tmp_path / "start")
    trace = Plan(watched=WRITES)
    upsert(open_on(FaultyFiles(TableFiles.open(copied(start, tmp_path / "traced")), trace)), options)
    for at in range(len(fault) % STRIDE, len(trace.trace), STRIDE):
        base = copied(start, tmp_path / "case")
        plan = Plan(at=at, fault=fault, watched=WRITES)
        with suppress(HoodieError, Killed):
            upsert(open_on(FaultyFiles(TableFiles.open(base), plan)), options)
        step = (fault, trace.trace[at])
        there = HoodieTable.open(base).scan().count()
        assert there in (0, 4), step
        upsert(HoodieTable.open(base), options)
        check_life(base, options, {f"k{i}": (1, "a") for i in range(4)})


@pytest.mark.parametrize("partition", ["files", "record_index", "column_stats", "secondary_index_name"])
@pytest.mark.parametrize(
    ("name", "folder_stays"),
    [("partitioned-stats-secondary", True), pytest.param("global-all", False, marks=pytest.mark.thorough)],
)
def test_a_partition_that_lost_its_files_is_told_and_can_be_built_anew(
    partition: str, name: str, folder_stays: bool, tmp_path: Path
) -> None:
    options = INDEXES[name]
    base = Kind(9, True).create(tmp_path / "t")
    table = HoodieTable.open(base)
    upsert(table, options)
    folder = base / ".hoodie/metadata" / partition
    shutil.rmtree(folder)
    if folder_stays:
        folder.mkdir()
    report = HoodieTable.open(base).verify(data=False)
    assert not report.is_right
    assert any("has no files" in each.text for each in report.findings), str(report)
    with pytest.raises(HoodieError):
        table.upsert([row(9)], options={**QUICK, **options})
    assert contents(base, options={"hoodie.metadata.enable": "false"}) == {f"k{i}": (1, "a") for i in range(4)}
    if partition == "record_index":
        table.index.drop("secondary_index_name", options=QUICK)
    table.index.drop(partition, options=QUICK)
    table.upsert([row(9)], options={**QUICK, **options})
    check_life(base, options, {f"k{i}": (1, "a") for i in (0, 1, 2, 3, 9)})


def test_an_index_of_keys_that_lost_its_groups_is_no_new_one(tmp_path: Path) -> None:
    base = Kind(9, True).create(tmp_path / "t")
    table = HoodieTable.open(base)
    upsert(table, PARTITIONED)
    for each in (base / ".hoodie/metadata/record_index").iterdir():
        each.unlink()
    with pytest.raises(InvalidTableError, match="'record_index' of the metadata table has no files"):
        table.upsert([row(1, 2, "b"), row(9)], options={**QUICK, **BY_INDEX})
    assert contents(base) == {f"k{i}": (1, "a") for i in range(4)}
