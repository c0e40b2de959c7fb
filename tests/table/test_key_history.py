"""Events replayed up to a commit give what a snapshot of that time shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.key_history import KeyHistory, trace_key_history
from hoodie_py.table.snapshot import open_snapshot
from tests.writer.written_tables import KINDS, Kind, contents, row

Corpus = Callable[[str], Path]

TABLES = [
    "event_time_deletes_mor_v6",
    "event_time_updates_mor_v9",
    "commit_time_deletes_mor_v8",
    "basic_cow_v6_nonpart",
    "basic_cow_v9_part",
    "compaction_pending_mor_v9",
    "clustering_done_mor_v6",
    "insert_overwrite_mor_v9",
    "log_compaction_mor_v9",
    "logonly_bucket_mor_v9",
    "archived_timeline_mor_v9",
    "archived_timeline_mor_v6",
    "rollback_completed_mor_v6",
    "merge_into_partial_mor_v9",
]


def without_place(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without what a rewrite of its file changes."""
    return {name: value for name, value in row.items() if name not in {"_hoodie_file_name", "_hoodie_commit_seqno"}}


def replay(history: KeyHistory, until: str) -> dict[str, dict[str, Any]]:
    """The key's row in each partition after the commits up to a time."""
    rows: dict[str, dict[str, Any]] = {}
    for event in history.events:
        if event.commit > until or event.change == "outdated":
            continue
        if event.values is None:
            rows.pop(event.partition_path, None)
        else:
            rows[event.partition_path] = without_place(event.values)
    return rows


@pytest.mark.parametrize("name", TABLES)
def test_events_up_to_a_commit_give_the_rows_of_that_time(corpus: Corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    snapshot = open_snapshot(str(corpus(name)))
    writes = [each.request_time for each in snapshot.timeline.list_completed_writes()]
    histories = {f"k{number}": trace_key_history(snapshot, f"k{number}") for number in range(12)}
    compared = 0
    for time in writes:
        try:
            rows = table.scan(as_of=time).to_arrow().to_pylist()
        except InvalidQueryError:  # cleaned
            continue
        for key, history in histories.items():
            if history.events and not history.is_complete and time < history.events[0].commit:
                continue
            shown = {
                each["_hoodie_partition_path"]: without_place(each)
                for each in rows
                if each["_hoodie_record_key"] == key
            }
            assert replay(history, time) == shown, (time, key)
            compared += bool(shown)
    assert compared


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_change_is_told_with_its_commit(tmp_path: Path, kind: Kind) -> None:
    table = HoodieTable.open(kind.create(tmp_path / "t"))
    commits = [
        table.upsert([row(1), row(2)]).instant,
        table.upsert([row(1, ts=2, name="b")]).instant,
        table.delete("id = 'k1'").instant,
        table.upsert([row(1, ts=4, name="c")]).instant,
    ]
    history = trace_key_history(open_snapshot(str(tmp_path / "t")), "k1")
    assert [event.commit for event in history.events] == commits
    assert [event.change for event in history.events] == ["inserted", "updated", "deleted", "inserted"]
    assert [event.operation for event in history.events] == ["UPSERT", "UPSERT", "DELETE", "UPSERT"]
    assert [event.values and event.values["name"] for event in history.events] == ["a", "b", None, "c"]
    assert all((tmp_path / "t" / str(event.file)).is_file() for event in history.events)
    assert all((event.completed is None) == (kind.version == 6) for event in history.events)
    assert history.is_complete


def test_a_version_that_loses_is_told_as_outdated(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    table.upsert([row(1, ts=5)])
    table.upsert([row(1, ts=3, name="late")])
    last = trace_key_history(open_snapshot(str(tmp_path / "t")), "k1").events[-1]
    assert (last.change, last.values and last.values["name"]) == ("outdated", "late")
    assert contents(tmp_path / "t") == {"k1": (5, "a")}


def test_a_compaction_is_no_event(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    table.upsert([row(1)])
    table.upsert([row(1, ts=2, name="b")])
    table.compact()
    table.upsert([row(3)])
    changes = [each.change for each in trace_key_history(open_snapshot(str(tmp_path / "t")), "k1").events]
    assert changes == ["inserted", "updated"]


def test_a_cleaned_beginning_is_said(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=False).create(tmp_path / "t"))
    for ts in range(1, 6):
        last = table.upsert([row(1, ts=ts)]).instant
    table.clean(retain_commits=1)
    history = trace_key_history(open_snapshot(str(tmp_path / "t")), "k1")
    assert not history.is_complete
    assert history.events[0].change == "written"
    assert history.events[-1].commit == last
    assert history.kept_since is not None


def test_an_earlier_life_may_have_been_cleaned(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=False).create(tmp_path / "t"))
    table.upsert([row(1), row(3)])
    table.delete("id = 'k1'")
    for ts in range(3, 6):
        table.upsert([row(3, ts=ts)])
    table.upsert([row(1, ts=6)])
    table.clean(retain_commits=2)
    history = trace_key_history(open_snapshot(str(tmp_path / "t")), "k1")
    assert [each.change for each in history.events] == ["inserted"]
    assert not history.is_complete
    assert history.was_cleaned


def test_only_one_partition_is_looked_into(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    table.upsert([row(1)])
    snapshot = open_snapshot(str(tmp_path / "t"))
    assert trace_key_history(snapshot, "k1", partition="p0").events == ()
    assert len(trace_key_history(snapshot, "k1", partition="p1").events) == 1


def test_a_key_that_no_file_has_has_no_events(tmp_path: Path) -> None:
    history = trace_key_history(open_snapshot(str(Kind(9, merge_on_read=True).create(tmp_path / "t"))), "k1")
    assert history.events == ()


@pytest.mark.parametrize("name", ["cdc_before_after_cow_v9", "cdc_before_mor_v9", "cdc_before_after_mor_v9"])
def test_a_history_says_what_change_data_says(corpus: Corpus, name: str) -> None:
    words = {"i": "inserted", "u": "updated", "d": "deleted"}
    changes = HoodieTable.open(corpus(name)).changes(as_structs=True).to_arrow().to_pylist()
    said: dict[str, list[tuple[str, str]]] = {}
    for each in sorted(changes, key=lambda change: change["ts_ms"]):
        said.setdefault((each["after"] or each["before"])["id"], []).append((each["ts_ms"], words[each["op"]]))
    snapshot = open_snapshot(str(corpus(name)))
    told = {
        key: [
            (event.commit, event.change) for event in trace_key_history(snapshot, key).events if event.change != "moved"
        ]
        for key in said
    }
    assert told == said
