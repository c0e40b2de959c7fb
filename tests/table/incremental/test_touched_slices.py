"""Which files of a range are looked up before they are read, and what is left of a range whose files were cleaned.

What is left are rows as they were at the range's end, each at most once, and no fewer than the latest slices have.
Java's answers are in integration/java_hudi/test_ranges.py.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, HoodieWarning
from hoodie_py.errors import FileMissingError, InvalidQueryError
from hoodie_py.table.incremental.touched_slices import compile_glob
from tests.table.incremental.test_query import FALLBACK, make, prices, row, times
from tests.watched_requests import Request

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("price", pa.int64())])


def make_commits(place: Path, table_type: str, version: int, commits: int) -> tuple[HoodieTable, list[str]]:
    table = HoodieTable.create(
        place, SCHEMA, record_key="id", ordering="ts", table_type=table_type, table_version=version
    )
    for number in range(commits):
        table.upsert([{"id": "a", "ts": number, "price": number}])
    writes = table.timeline.select_writes()
    return table, [(each.completion_time if version > 6 else each.request_time) or "" for each in writes]


def find_looked_up(made: list[Request]) -> list[str]:
    """Paths of data files that were looked up."""
    return [each.path for each in made if each.verb == "stat" and "/.hoodie/" not in each.path]


@pytest.mark.parametrize(("version", "expected"), [(9, 0), (8, 0), (6, 2)])
def test_without_cleans_only_old_versions_are_looked_up(
    tmp_path: Path, requests_made: list[Request], version: int, expected: int
) -> None:
    table, times = make_commits(tmp_path / "t", "MERGE_ON_READ", version, 3)
    _ = table.schema  # of the newest file, which is looked up for it
    requests_made.clear()
    assert table.incremental(times[0]).to_arrow()["price"].to_pylist() == [2]
    assert len(find_looked_up(requests_made)) == expected


def test_commits_before_the_earliest_retained_one_are_looked_up(tmp_path: Path, requests_made: list[Request]) -> None:
    table, times = make_commits(tmp_path / "t", "COPY_ON_WRITE", 9, 5)
    table.clean(retain_commits=2)
    _ = table.schema  # of the newest file, which is looked up for it
    requests_made.clear()
    assert table.incremental(times[2]).to_arrow()["price"].to_pylist() == [4]
    assert find_looked_up(requests_made) == []
    with pytest.warns(HoodieWarning, match="What is left of the file slices at its end is read"):
        assert table.incremental(times[0], times[1]).to_arrow().num_rows == 0
    assert len(find_looked_up(requests_made)) == 1


def test_a_clean_that_counts_file_versions_leaves_nothing_certain(tmp_path: Path, requests_made: list[Request]) -> None:
    table, times = make_commits(tmp_path / "t", "COPY_ON_WRITE", 9, 3)
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    _ = table.schema  # of the newest file, which is looked up for it
    requests_made.clear()
    assert table.incremental(times[1]).to_arrow()["price"].to_pylist() == [2]
    assert len(find_looked_up(requests_made)) == 1


def test_a_clean_that_counts_commits_does_not_hide_an_earlier_one_that_counts_versions(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("part", pa.string()))
    table = HoodieTable.create(
        tmp_path / "t", schema, record_key="id", ordering="ts", partition_by="part", table_type="COPY_ON_WRITE"
    )
    for number, ids in enumerate(["ab", "ab", "ab", "a", "a", "a"]):
        table.upsert([{"id": each, "ts": number, "price": number, "part": each} for each in ids])
    times = [each.completion_time or "" for each in table.timeline.select_writes()]
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"})
    early = table.timeline.select_writes().instants[3]
    assert table.clean(retain_commits=3).earliest == early.request_time
    with pytest.warns(HoodieWarning, match="What is left of the file slices at its end is read"):
        assert table.incremental(times[2], times[3]).to_arrow().num_rows == 0


def test_a_file_that_is_lost_is_an_error(tmp_path: Path) -> None:
    table, times = make_commits(tmp_path / "t", "MERGE_ON_READ", 9, 2)
    for log in (tmp_path / "t").glob(".*.log.*"):
        log.unlink()
    with pytest.raises(FileMissingError, match="A file of the range is gone"):
        table.incremental(times[0]).to_arrow()


PATH = "/lake/t/2026/11/25/a_1.parquet"


@pytest.mark.parametrize(
    "glob", ["*", "**", "*/2026/*", "*/20??/11/*", "*/2026/1[0-2]/*", "*/2026/{10,11}/*", "*[!b]_1.parquet", "*[^b]_1*"]
)
def test_what_matches(glob: str) -> None:
    assert compile_glob(glob).fullmatch(PATH)


@pytest.mark.parametrize("glob", ["/2026/*", "*/2026/1[2-9]/*", "*/2026/{09,10}/*", "*.log", r"*\*", "*[!a]_1.parquet"])
def test_what_does_not(glob: str) -> None:
    assert not compile_glob(glob).fullmatch(PATH)


@pytest.mark.parametrize("glob", ["[abc", "*{a,b", "[z-a]", "x" * 5000])
def test_broken_globs_are_refused(glob: str) -> None:
    with pytest.raises(InvalidQueryError, match=r"incr\.path\.glob is no glob"):
        compile_glob(glob)


def test_many_stars_take_no_time() -> None:
    assert not compile_glob("*" * 4000 + "x").fullmatch("a" * 5000)


KINDS = [("MERGE_ON_READ", 9), ("MERGE_ON_READ", 8), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9), ("COPY_ON_WRITE", 6)]
OFF = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "false",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
ONE_VERSION = {
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1",
}  # fmt: skip
ARCHIVE = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


@pytest.fixture(autouse=True)
def _expect_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoodieWarning)
        yield


def upsert(table: HoodieTable, price: int, *keys: str) -> None:
    table.upsert([row(key, price, price) for key in keys], options=OFF)


def clean(table: HoodieTable) -> None:
    table.clean(options={**OFF, **ONE_VERSION})


def moved_on(place: Path, kind: tuple[str, int]) -> tuple[HoodieTable, list[str]]:
    """A table whose files of three commits are cleaned, but for the last base file."""
    table = make(place, kind)
    upsert(table, 1, "a", "b")
    for price, key in ((2, "a"), (3, "b")):
        upsert(table, price, key)
        if kind[0] == "MERGE_ON_READ":
            table.compact(options=OFF)
    found = times(table.refresh())
    clean(table)
    return table, found


@pytest.mark.parametrize("fallback", ["true", "false", None])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_range_whose_last_files_are_there_needs_no_others(
    tmp_path: Path, kind: tuple[str, int], fallback: str | None
) -> None:
    table, found = moved_on(tmp_path / "t", kind)
    options = {} if fallback is None else {FALLBACK: fallback}
    assert prices(table.incremental(end=found[-1], options=options)) == {"a": 2, "b": 3}
    upsert(table, 9, "a")
    with warnings.catch_warnings():
        if (kind[1], fallback) != (6, "true"):  # where a range from the beginning may have archived commits
            warnings.simplefilter("error")
        assert prices(table.incremental(end=found[-1], options=options)) == {"a": 2, "b": 3}
        assert prices(table.incremental(found[0], found[-1], options=options)) == {"a": 2, "b": 3}
        assert prices(table.incremental(options=options)) == {"a": 9, "b": 3}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_log_files_of_later_commits_hide_no_row_of_a_cleaned_range(tmp_path: Path, kind: tuple[str, int]) -> None:
    """The files of the first two commits are gone, but the oldest base file that is there has the row."""
    table, found = moved_on(tmp_path / "t", kind)
    second = found[1]
    assert prices(table.incremental(end=second, options={FALLBACK: "true"})) == {"a": 2}
    upsert(table, 9, "a")
    assert prices(table.incremental(end=second, options={FALLBACK: "true"})) == {"a": 2}
    with pytest.raises(InvalidQueryError, match="are gone"):
        table.incremental(end=second, options={FALLBACK: "false"}).to_arrow()


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3]], ids=str)
def test_a_range_by_the_options_of_java_reads_the_latest_slices(tmp_path: Path, kind: tuple[str, int]) -> None:
    """So does Java 1.2.0, where a log file of the later commit, or a base file, has another row."""
    table, found = moved_on(tmp_path / "t", kind)
    upsert(table, 9, "a")
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.read.end.instanttime": found[-1],
    }
    assert prices(table.scan(options=asked)) == {"b": 3}


@pytest.mark.parametrize("version", [9, 8])
def test_a_range_of_archived_commits_has_the_rows_of_its_end(tmp_path: Path, version: int) -> None:
    table = make(tmp_path / "t", ("MERGE_ON_READ", version))
    upsert(table, 1, "a", "b")
    upsert(table, 2, "a")
    table.compact(options=OFF)
    for price in range(3, 9):
        upsert(table, price, "c")
    table.compact(options=OFF)
    compacted = times(table.refresh())
    clean(table)
    for price in range(9, 13):
        upsert(table, price, "a")
    table.archive(options={**OFF, **ARCHIVE})
    assert len(times(table.refresh())) < len(compacted)
    assert prices(table.incremental(end=compacted[1])) == {"a": 2, "b": 1}
    assert prices(table.incremental(end=compacted[-1])) == {"a": 2, "b": 1, "c": 8}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_that_a_later_clustering_moved_come_once(tmp_path: Path, kind: tuple[str, int]) -> None:
    table = make(tmp_path / "t", kind)
    upsert(table, 1, "a")
    upsert(table, 1, "b")
    upsert(table, 2, "a")
    end = times(table.refresh())[-1]
    table.cluster(options=OFF)
    upsert(table, 9, "a")
    read = {FALLBACK: "true"}
    assert prices(table.incremental(end=end, options=read)) == {"a": 2, "b": 1}
    clean(table)
    upsert(table, 10, "b")
    assert prices(table.incremental(end=end, options=read)) in ({"b": 1}, {"a": 2, "b": 1})


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 6))])
def test_ranges_of_random_histories(tmp_path: Path, kind: tuple[str, int], seed: int) -> None:
    """No row is wrong or doubled, and none is missing that the latest slices have."""
    lot = random.Random(f"{kind} {seed}")
    table = make(tmp_path / "t", kind)
    states: list[tuple[str, Mapping[str, tuple[int, str]]]] = []  # end of a range; price and time of each key's writer
    now: dict[str, tuple[int, str]] = {}

    def write(price: int) -> None:
        keys = lot.sample("abcdef", lot.randint(1, 3))
        if lot.random() < 0.1:
            table.insert_overwrite([row(key, price, price) for key in keys], options=OFF)
            now.clear()
        else:
            upsert(table, price, *keys)
        time = times(table.refresh())[-1]
        now.update(dict.fromkeys(keys, (price, time)))
        states.append((time, dict(now)))

    steps: list[Callable[[], Any]] = [
        lambda: clean(table),
        lambda: table.clean(options={**OFF, "hoodie.clean.commits.retained": "1"}),
        lambda: table.cluster(options=OFF),
        lambda: table.savepoint(options=OFF),
        lambda: table.archive(options={**OFF, **ARCHIVE}),
    ]
    if kind[0] == "MERGE_ON_READ":
        steps += [lambda: table.compact(options=OFF)] * 3
    for price in range(1, 11):
        write(price)
        if lot.random() < 0.5:
            lot.choice(steps)()
    table = table.refresh()
    ends = [time for time, _ in states]
    for number, (end, state) in enumerate(states):
        for start in ["", *ends[:number]]:
            found = prices(table.incremental(start or "000", end, options={FALLBACK: "true"}))
            right = {key: price for key, (price, time) in state.items() if time > start}
            latest = {key for key, (_, time) in now.items() if start < time <= end}
            assert found.items() <= right.items(), (start, end)
            assert latest <= found.keys(), (start, end)
