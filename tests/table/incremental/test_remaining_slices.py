"""What is left of a range whose files were cleaned: rows as they were at its end, each at most once, and no fewer than
the latest slices have. Java's answers are in integration/java_hudi/test_ranges.py.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, HoodieWarning, InvalidQueryError
from tests.table.incremental.test_query import FALLBACK, make, prices, row, times

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
