"""Java Hudi and this package archive one table's timeline in turns; each reads what the other archived."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieWarning
from integration.java_hudi.tables import SCHEMA, Kind, Lake, Row, by_key, make_row

KINDS = [
    Kind(version, partitioned=version != 8, metadata=metadata, merge_on_read=merge_on_read)
    for version in (9, 8, 6)
    for merge_on_read in (True, False)
    for metadata in (True, False)
]
SOON: Mapping[str, str] = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.timeline.compaction.batch.size": "3",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
INCREMENTAL = {"hoodie__datasource__query__type": "incremental"}
_BEGIN = "hoodie__datasource__read__begin__instanttime"
_END = "hoodie__datasource__read__end__instanttime"
_MOST = 6  # a compaction or clean after the archival makes one more
_WRITES = ("commit", "deltacommit", "replacecommit")


CASES = [*((kind, True) for kind in KINDS), *((kind, False) for kind in KINDS if kind.metadata and kind.version != 8)]


@pytest.mark.parametrize(
    ("lake", "ours_first"),
    CASES,
    ids=[f"{kind}-{'ours' if first else 'java'}" for kind, first in CASES],
    indirect=["lake"],
)
def test_both_archive_in_turns(lake: Lake, *, ours_first: bool) -> None:
    """Every instant stays in one of the timelines, and answers as before, whoever archived it."""
    seen: dict[tuple[str, str], str] = {}
    first = 10
    for ours, commits in ((ours_first, 8), (not ours_first, 5), (ours_first, 5)):
        for ts in range(first, first + commits):
            _write(lake, ts, ours=ours)
            seen |= _list_all(lake)
        first += commits
        assert _list_all(lake) == seen
        assert _count_active(lake) <= _MOST
        _check_archived(lake, seen)
    _check_incremental(lake, seen)
    lake.check()
    lake.check_metadata()


def _write(lake: Lake, ts: int, *, ours: bool) -> None:
    rows = [make_row(number, ts) for number in (ts % 7, 7 + ts % 5, 30 + ts)]
    options = {**SOON, "hoodie.compact.inline": str(lake.kind.merge_on_read).lower()}
    if not ours:
        lake.write(rows, **{name.replace(".", "__"): value for name, value in options.items()})
        return
    lake.open().upsert(pa.Table.from_pylist(rows, SCHEMA), {**options, "hoodie.parquet.small.file.limit": "0"})
    lake.note(rows, "upsert")


def _list_all(lake: Lake) -> dict[tuple[str, str], str]:
    """Completion times of all completed instants by request time and action; each is there once."""
    page = lake.open().inspect.timeline(archived=True).to_pylist()
    done = [each for each in page if each["state"] == "completed"]
    found = {(each["request_time"], each["action"]): each["completion_time"] for each in done}
    assert len(found) == len(done)
    return found


def _count_active(lake: Lake) -> int:
    return len(lake.open().timeline.select_writes())


def _check_archived(lake: Lake, seen: Mapping[tuple[str, str], str]) -> None:
    """Java lists as archived what has left the active timeline."""
    active = {each.request_time for each in lake.open().timeline}
    archived = {time for time, action in seen if action in _WRITES and time not in active}
    assert archived
    rows = lake.java.call(lake.path, "show_archived_commits", limit=1000, start_ts="000", end_ts="999")
    assert {row["commit_time"] for row in rows} >= archived
    assert all(row["total_files_added"] + row["total_files_updated"] for row in rows)


def _check_incremental(lake: Lake, seen: Mapping[tuple[str, str], str]) -> None:
    """Ranges that begin among the archived commits give the same rows in both."""
    times = sorted(value for (_, action), value in seen.items() if action in _WRITES)
    by_request = sorted(time for time, action in seen if action in _WRITES)
    bounds = times if lake.kind.version >= 8 else by_request
    for start, end in ((bounds[len(bounds) // 2], None), (bounds[-8], bounds[-2]), (bounds[-4], None)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HoodieWarning)  # files were cleaned: both read the latest slices
            ours = by_key(lake.open().incremental(start, end).to_arrow())
        until = {} if end is None else {_END: end}
        java = by_key(lake.java.read(lake.path, **INCREMENTAL, **{_BEGIN: start}, **until))
        assert _plain(ours) == _plain(java), (start, end)


def _plain(rows: Mapping[str, Row]) -> dict[str, tuple[Any, ...]]:
    return {key: (row["ts"], row["price"], row["name"]) for key, row in rows.items()}
