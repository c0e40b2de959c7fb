"""A consumer that stores rows and token together gets every row once, whatever happens to it or to the table."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import FileMissingError, HoodieTable, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.incremental.follow import FollowedBatch, TableFollower
from tests.table.archives import archive
from tests.watched_requests import Request, asks, find_read_commits, watching_requests
from tests.writer.written_tables import KINDS, Kind, row

MOR = Kind(9, merge_on_read=True)


def keys(batches: Iterable[FollowedBatch]) -> list[tuple[str, int]]:
    """Id and ts of the rows, sorted."""
    return sorted((each["id"], each["ts"]) for batch in batches for each in batch.rows.to_pylist())


def new_table(base: Path, kind: Kind = MOR) -> HoodieTable:
    return HoodieTable.open(kind.create(base))


def read_new(table: HoodieTable, start: str, **more: Any) -> list[FollowedBatch]:
    return list(table.follow(start, poll=None, **more))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_of_commits_come_once_from_token_to_token(tmp_path: Path, kind: Kind) -> None:
    table = new_table(tmp_path / "t", kind)
    table.upsert([row(1), row(2)])
    first = read_new(table, "earliest")
    assert keys(first) == [("k1", 1), ("k2", 1)]
    assert read_new(table, first[-1].token) == []
    last = table.upsert([row(2, ts=2), row(3, ts=2)])
    table.delete("id = 'k1'")
    second = read_new(table, first[-1].token)
    assert keys(second) == [("k2", 2), ("k3", 2)]
    assert last.instant in second[-1].commits
    assert len(second[-1].commits) == 2
    assert read_new(table, second[-1].token) == []
    assert keys(read_new(table, "earliest")) == keys(table_rows(table))


def take_step(follower: TableFollower) -> list[FollowedBatch]:
    taken = [next(follower)]
    while not taken[-1].is_last:
        taken.append(next(follower))
    return taken


def table_rows(table: HoodieTable) -> list[FollowedBatch]:
    return [FollowedBatch(each, "", is_last=True, commits=()) for each in table.refresh().scan().to_batches()]


def test_the_token_moves_with_the_last_batch_of_a_step(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.insert([row(number) for number in range(10)])
    batches = read_new(table, "earliest", batch_rows=2)
    assert len(batches) >= 5
    assert {each.token for each in batches[:-1]} == {"t@start"}
    assert [each.is_last for each in batches] == [False] * (len(batches) - 1) + [True]
    assert batches[-1].token.startswith("t@completed:")


@pytest.mark.parametrize("kind", [MOR, Kind(6, merge_on_read=True), Kind(8, merge_on_read=False)], ids=str)
def test_commits_can_come_one_by_one(tmp_path: Path, kind: Kind) -> None:
    table = new_table(tmp_path / "t", kind)
    table.upsert([row(1), row(2)])
    start = table.follow("latest").token
    commits = [table.upsert([row(1, ts=ts), row(2, ts=ts)]).instant for ts in range(5, 9)]
    batches = read_new(table, start, max_commits=1)
    steps = {each.commits: each.rows for each in batches}
    assert sorted(steps) == [(commit,) for commit in commits]
    assert keys(batches) == sorted((f"k{number}", ts) for number in (1, 2) for ts in range(5, 9))


def test_a_killed_consumer_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """It stores rows with the token of whole steps, is killed anywhere, and the table is maintained meanwhile."""
    chance = random.Random(29)
    table = new_table(tmp_path / "t")
    written: Counter[tuple[str, int]] = Counter()
    stored: Counter[tuple[str, int]] = Counter()
    token = "earliest"
    for ts in range(1, 25):
        given = [row(number, ts=ts) for number in chance.sample(range(8), 3)]
        table.upsert(given)
        written.update((each["id"], ts) for each in given)
        maintenance = chance.random()
        if maintenance < 0.2:
            table.compact()
        elif maintenance < 0.3:
            table.clean(retain_commits=8)
        if chance.random() < 0.5:
            continue
        taken: list[FollowedBatch] = []
        for batch in table.follow(token, poll=None, batch_rows=1, max_commits=1):
            if chance.random() < 0.1:
                break  # killed: what it has taken since the last whole step is gone
            taken.append(batch)
            if batch.is_last:
                stored.update(keys(taken))
                token, taken = batch.token, []
    stored.update(keys(read_new(table, token, max_commits=1)))
    assert stored == written


def test_commits_that_land_while_it_waits_are_found(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    with HoodieTable.open(tmp_path / "t").follow("latest", poll=0.05) as follower:
        threading.Timer(0.3, lambda: table.upsert([row(2, ts=5)])).start()
        assert keys([next(follower)]) == [("k2", 5)]
        assert follower.token.endswith(table.refresh().timeline.last.completion_time or "")


def test_an_empty_table_is_waited_for(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    follower = HoodieTable.open(tmp_path / "t").follow("earliest", poll=0.05)
    threading.Timer(0.2, lambda: table.upsert([row(1)])).start()
    assert keys([next(follower)]) == [("k1", 1)]


def test_close_from_another_thread_ends_a_wait_at_once(tmp_path: Path) -> None:
    follower = new_table(tmp_path / "t").follow("earliest", poll=60)
    threading.Timer(0.3, follower.close).start()
    began = time.monotonic()
    assert list(follower) == []
    assert time.monotonic() - began < 10
    assert list(follower) == []


def test_close_between_batches_ends_it(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.insert([row(number) for number in range(10)])
    follower = table.follow("earliest", batch_rows=1)
    next(follower)
    follower.close()
    assert list(follower) == []
    assert follower.token == "t@start"


def test_an_interrupt_ends_a_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = new_table(tmp_path / "t").follow("earliest", poll=60)

    def interrupt(_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(follower._closed, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(follower)


def test_a_commit_without_wanted_rows_moves_the_token(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    (batch,) = read_new(table, "earliest", columns=["name"], filter="ts > 100")
    assert batch.rows.num_rows == 0
    assert batch.rows.schema.names == ["name"]
    assert read_new(table, batch.token) == []


def test_latest_begins_after_the_state_of_the_handle(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    old = HoodieTable.open(tmp_path / "t")
    table.upsert([row(2)])
    assert keys(read_new(old, "latest")) == [("k2", 1)]
    assert keys(table_rows(old)) == [("k1", 1), ("k2", 1)]


def test_a_time_is_a_start(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    first = table.timeline.last
    assert first is not None
    table.upsert([row(2)])
    assert keys(read_new(table, str(first.completion_time))) == [("k2", 1)]
    assert keys(read_new(table, "2020-01-01")) == [("k1", 1), ("k2", 1)]
    assert read_new(table, "2099-01-01") == []
    assert table.follow("2099-01-01").token == table.follow("latest").token


@pytest.mark.parametrize("kind", [Kind(6, merge_on_read=True), Kind(6, merge_on_read=False)], ids=str)
def test_version_6_stops_before_an_unfinished_write(tmp_path: Path, kind: Kind) -> None:
    table = new_table(tmp_path / "t", kind)
    table.upsert([row(1)])
    late = table.upsert([row(2, ts=2)]).instant
    table.upsert([row(4, ts=3)])
    (completed,) = [path for path in (tmp_path / "t/.hoodie").glob(f"{late}.*commit") if "." not in path.stem]
    hidden = completed.rename(tmp_path / "hidden")
    first = read_new(HoodieTable.open(tmp_path / "t"), "earliest")
    assert keys(first) == [("k1", 1)]
    follower = HoodieTable.open(tmp_path / "t").follow(first[-1].token, poll=None)
    assert list(follower) == []
    assert follower.token == first[-1].token == HoodieTable.open(tmp_path / "t").follow("latest").token
    hidden.rename(completed)
    assert keys(read_new(table, first[-1].token)) == [("k2", 2), ("k4", 3)]


def test_a_pending_compaction_does_not_stop_version_6(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", Kind(6, merge_on_read=True))
    table.upsert([row(1)])
    table.upsert([row(1, ts=2)])
    assert table.schedule_compaction()
    table.upsert([row(3, ts=3)])
    batches = read_new(table, "earliest")
    assert keys(batches) == [("k1", 2), ("k3", 3)]
    follower = table.follow(batches[-1].token, poll=0.01)
    table.run_compaction()
    assert [each.rows.num_rows for each in read_new(table, batches[-1].token)] in ([], [0])
    table.upsert([row(5, ts=4)])
    assert keys([next(follower)]) == [("k5", 4)]


def test_a_commit_behind_the_position_is_an_error(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    late = table.upsert([row(2)])
    table.upsert([row(3)])
    (completed,) = (tmp_path / "t/.hoodie/timeline").glob(f"{late.instant}_*.deltacommit")
    hidden = completed.rename(tmp_path / "hidden")
    follower = table.follow("earliest", poll=0.01)
    assert keys(take_step(follower)) == [("k1", 1), ("k3", 1)]
    hidden.rename(completed)
    with pytest.raises(InvalidQueryError, match=f"{late.instant} showed up after later ones"):
        next(follower)


@pytest.mark.parametrize("kind", [MOR, Kind(6, merge_on_read=True), Kind(6, merge_on_read=False)], ids=str)
def test_archived_commits_are_not_passed_over(tmp_path: Path, kind: Kind) -> None:
    table = new_table(tmp_path / "t", kind)
    commits = [table.upsert([row(number, ts=number)]).instant for number in range(1, 7)]
    token = read_new(table, "earliest", max_commits=2)[1].token
    archive(tmp_path / "t", commits[:4])
    assert keys(read_new(table.refresh(), token)) == [(f"k{number}", number) for number in (3, 4, 5, 6)]
    assert keys(read_new(table.refresh(), "earliest")) == [(f"k{number}", number) for number in range(1, 7)]


@pytest.mark.parametrize("given", ["max_commits", "options"])
def test_archived_commits_are_an_error_where_full_scans_are_forbidden(tmp_path: Path, given: str) -> None:
    table = new_table(tmp_path / "t", Kind(6, merge_on_read=True))
    commits = [table.upsert([row(number)]).instant for number in range(1, 5)]
    archive(tmp_path / "t", commits[:2])
    options = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"}
    with pytest.raises(InvalidQueryError, match=f"2 commits .* archived.*from {commits[2]}"):
        read_new(table.refresh(), "earliest", **{given: {"max_commits": 1, "options": options}[given]})


def test_cleaned_commits_are_an_error_one_by_one_and_the_latest_rows_together(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", Kind(9, merge_on_read=False))
    for ts in range(1, 6):
        table.upsert([row(1, ts=ts), row(3, ts=1)])
    table.clean(retain_commits=1)
    assert {key for key, _ in keys(read_new(table, "earliest"))} == {"k1", "k3"}
    with pytest.raises(InvalidQueryError, match="gone"):
        read_new(table, "earliest", max_commits=1)


def test_a_table_made_anew_is_an_error(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    token = read_new(table, "earliest")[-1].token
    follower = table.follow(token, poll=0.01)
    shutil.rmtree(tmp_path / "t")
    again = new_table(tmp_path / "t")
    again.upsert([row(2)])
    for start in (lambda: next(follower), lambda: again.follow(token)):
        with pytest.raises(InvalidQueryError, match="made anew"):
            start()


def test_a_token_of_another_table_is_an_error(tmp_path: Path) -> None:
    other = new_table(tmp_path / "other")
    with pytest.raises(InvalidQueryError, match="of the table 'other'"):
        new_table(tmp_path / "t").follow(other.follow("latest").token)


@pytest.mark.parametrize(
    "arguments",
    [{"start": "soon"}, {"start": "x@y"}, {"poll": 0}, {"poll": "5"}, {"max_commits": 0}, {"max_commits": True},
     {"columns": ["nope"]}, {"filter": "nope = 1"}],
)  # fmt: skip
def test_bad_arguments_are_refused_at_once(tmp_path: Path, arguments: dict[str, Any]) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    with pytest.raises(InvalidQueryError):
        table.follow(**arguments)


def test_a_table_without_meta_fields_cannot_be_followed(corpus) -> None:
    with pytest.raises(UnsupportedFeatureError, match="meta"):
        HoodieTable.open(corpus("nometa_mor_v6")).follow()


def test_files_deleted_before_a_step_begins_are_looked_up_again(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    follower = table.follow("earliest", poll=None)
    is_data = asks(r"/[^/]*\.(parquet|log\.[^/]*)$", "local_path")
    failures = iter([True, True, False])

    def answer(request: Request) -> Any:
        if is_data(request) and next(failures, False):
            raise FileMissingError("There is no such file.")
        return request.make()

    with watching_requests(answer):
        assert keys(follower) == [("k1", 1)]
        assert next(failures, None) is None
        failures = iter([True] * 9)
        with pytest.raises(FileMissingError):
            list(table.follow("earliest", poll=None))


@pytest.mark.parametrize("kind", [MOR, Kind(9, merge_on_read=False), Kind(6, merge_on_read=False)], ids=str)
def test_changes_come_commit_by_commit(tmp_path: Path, kind: Kind) -> None:
    base = kind.create(tmp_path / "t", properties={"hoodie.table.cdc.enabled": "true"})
    table = HoodieTable.open(base)
    table.upsert([row(1), row(3)])
    start = table.follow("latest", changes=True).token
    commits = [
        table.upsert([row(1, ts=2, name="b")]).instant,
        table.upsert([row(5, ts=3)]).instant,
        table.delete("id = 'k1'").instant,
    ]
    batches = list(table.follow(start, poll=None, changes=True, as_structs=True))
    assert [each.commits for each in batches] == [(commit,) for commit in commits]
    seen = [
        (each["op"], each["before"] and each["before"]["name"], each["after"] and each["after"]["name"])
        for batch in batches
        for each in batch.rows.to_pylist()
    ]
    assert seen == [("u", "a", "b"), ("i", None, "a"), ("d", "b", None)]
    assert list(table.follow(batches[-1].token, poll=None, changes=True)) == []
    together = table.follow(start, poll=None, changes=True, max_commits=9)
    assert {each.commits for each in together} == {tuple(commits)}


def test_changes_are_followed_of_tables_that_have_them(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    with pytest.raises(InvalidQueryError, match="change data"):
        table.follow(changes=True)
    with pytest.raises(InvalidQueryError, match="as_structs"):
        table.follow(as_structs=True)


@pytest.mark.parametrize("name", ["archived_timeline_mor_v6", "archived_timeline_mor_v9", "upgraded_6_to_9_mor"])
def test_tables_of_java_are_followed_from_the_beginning(corpus, name: str) -> None:
    table = HoodieTable.open(corpus(name))
    batches = read_new(table, "earliest")
    assert Counter(keys(batches)) == Counter(keys(table_rows(table)))
    assert read_new(table, batches[-1].token) == []


def test_a_token_from_before_an_upgrade_goes_on(corpus) -> None:
    table = HoodieTable.open(corpus("upgraded_6_to_9_mor"))
    writes = list(table.timeline.select_writes())
    token = f"upgraded_6_to_9_mor@requested:{writes[3].request_time}"
    follower = table.follow(token, poll=None)
    assert [commit for batch in follower if batch.is_last for commit in batch.commits] == [
        each.request_time for each in writes[4:]
    ]
    assert follower.token == f"upgraded_6_to_9_mor@completed:{writes[-1].completion_time}"


def test_a_batch_says_in_a_line_what_it_is(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert([row(1)])
    (batch,) = read_new(table, "earliest")
    assert repr(batch) == f"FollowedBatch(1 rows of 1 commits, {batch.token}, is_last)"


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, None])
@pytest.mark.parametrize("name", ["log_compaction_mor_v9", "clustering_done_mor_v6", "compaction_pending_mor_v9"])
def test_services_of_java_repeat_no_version_and_lose_none(
    corpus: Callable[[str], Path], name: str, most: int | None
) -> None:
    table = HoodieTable.open(corpus(name))
    seen: set[tuple[str, str]] = set()
    last: dict[str, dict[str, Any]] = {}
    for batch in table.follow("earliest", poll=None, max_commits=most):
        rows = batch.rows.to_pylist()
        found = {(each["_hoodie_record_key"], each["_hoodie_commit_time"]) for each in rows}
        assert len(found) == len(rows)
        assert not found & seen
        seen |= found
        for each in rows:
            known = last.get(each["id"])
            last[each["id"]] = each if known is None or known["ts"] <= each["ts"] else known
    services = {"LOG_COMPACT", "COMPACT", "CLUSTER"}
    timeline = table._snapshot.timeline
    writes = timeline.list_completed_writes()
    moved = {each.request_time for each in writes if timeline.read_metadata(each).operation_type in services}
    assert not moved & {commit for _, commit in seen}
    for each in table.scan().to_arrow().to_pylist():
        data = {name for name in each if not name.startswith("_hoodie_")}
        assert {name: last[each["id"]][name] for name in data} == {name: each[name] for name in data}


def test_a_step_reads_the_metadata_of_its_own_commits(tmp_path: Path, requests_made: list[Request]) -> None:
    table = new_table(tmp_path / "t")
    for number in range(8):
        table.upsert([row(number)])
    requests_made.clear()
    steps = [batch for batch in table.follow("earliest", poll=None, max_commits=1, columns=["id"]) if batch.is_last]
    assert len(steps) == 8
    read = find_read_commits(requests_made, tmp_path / "t")
    assert len(steps) <= len(read) < 3 * len(steps)  # the schema's commit, and the step's own
