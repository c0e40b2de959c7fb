"""Tables in other versions: the same rows at all times, whatever happens meanwhile."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.upgrade.change_version import check_settled
from tests.watched_requests import asks, meeting_request
from tests.writer.compaction_tables import QUICK, copied, opened, orphans, rows, writable
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.written_tables import Kind, row, session

INDEXES = {
    **QUICK,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
POINTS = 2  # of the places where a run is killed; all of them once by hand
ARCHIVAL = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def fill(kind: Kind, base: Path, options: dict[str, str]) -> HoodieTable:
    """A table with archived commits, log files and several slices."""
    if (kind, len(options)) not in _FILLED:
        made = Path(tempfile.mkdtemp(prefix="hoodie_py-versions-"))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        _fill(kind, made / "t", options)
        _FILLED[kind, len(options)] = made / "t"
    shutil.copytree(_FILLED[kind, len(options)], base)  # with the times of the files
    return HoodieTable.open(base)


_FILLED: dict[tuple[Kind, int], Path] = {}


def _fill(kind: Kind, base: Path, options: dict[str, str]) -> None:
    table = HoodieTable.open(kind.create(base))
    table.upsert([row(number) for number in range(8)], options)
    table.upsert([row(number, 2) for number in range(2, 6)], options)
    if kind.merge_on_read:
        table.compact(options=options)
    for ts in (4, 5):
        table.upsert([row(number, ts) for number in range(ts, 10)], options)
    table.archive(options={**options, **ARCHIVAL})
    table.delete(["k1"], options)


def change(table: HoodieTable, to: int, **more: Any) -> Any:
    """Bring a table to a version."""
    return (table.upgrade if to > table.config.version else table.downgrade)(to, options=QUICK, **more)


def look_back(table: HoodieTable) -> dict[str, Any]:
    """The rows at each active commit."""
    found = {}
    for each in table.timeline.select_writes():
        past = table.scan(as_of=each.request_time).to_arrow().drop_columns(["_hoodie_file_name"])
        found[each.request_time] = sorted(map(repr, past.to_pylist()))
    return found


def tell_commits(table: HoodieTable) -> dict[str, list[str]]:
    """What commits wrote, by the commit time in the rows."""
    found: dict[str, list[str]] = {}
    for each in table.incremental().to_arrow().to_pylist():
        found.setdefault(each["_hoodie_commit_time"], []).append(each["id"])
    return {time: sorted(ids) for time, ids in found.items()}


def check_whole(table: HoodieTable) -> None:
    report = table.verify()
    assert report.is_right, str(report)
    assert table._snapshot.metadata.open() is None or table._snapshot.metadata.open().unlisted == ()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "path", "options"),
    [
        (Kind(6, True), (9,), INDEXES),
        (Kind(9, True), (6,), INDEXES),
        (Kind(8, False, False), (9, 8, 6), QUICK),
    ],
    ids=lambda each: str(each) if isinstance(each, Kind) else None,
)
@pytest.mark.filterwarnings("ignore:[0-9,]+ commits? of the range .* archived")  # up to version 6
def test_the_rows_stay(kind: Kind, path: tuple[int, ...], options: dict[str, str], tmp_path: Path) -> None:
    table = fill(kind, tmp_path / "t", options)
    archived = {each.request_time: each.action for each in table._snapshot.timeline.read_archive().instants}
    assert archived
    ts = 20
    for to in path:
        before, past, told, version = rows(table), look_back(table), tell_commits(table), table.config.version
        planned = change(table, to, dry_run=True)
        assert table.config.version == version
        done = change(table, to)
        assert (done.before, done.after, table.config.version) == (version, to, to)
        assert planned.actions[:1] == done.actions[:1]
        assert rows(table) == before
        now = look_back(table)
        assert {time: now[time] for time in past} == past
        assert tell_commits(table) == told
        found = table._snapshot.timeline.read_archive()
        assert {each.request_time: each.action for each in found.instants} == archived
        assert all(found.read_metadata(time) for time in found.completion_times)
        assert sum(len(each.log_files) for each in table.file_slices()) == 0
        assert orphans(tmp_path / "t") == []
        check_whole(table)
        ts += 1
        table.upsert([row(number, ts) for number in range(3)], options)
        if kind.merge_on_read:
            table.compact(options=options)
        check_whole(table)
        assert change(table, to).actions == ()


@pytest.mark.parametrize("path", [(9, 8, 6), (6, 8, 9)])
def test_in_an_object_store(path: tuple[int, ...]) -> None:
    uri = f"memory://{uuid4().hex}/t"
    table = HoodieTable.open(Kind(path[0], True).create(uri))
    for ts in (1, 2):
        table.upsert([row(number, ts) for number in range(4)], INDEXES)
    before = rows(table)
    for to in path[1:]:
        change(table, to)
        check_whole(HoodieTable.open(uri))
        assert rows(table) == before


def test_a_pending_plan_stays(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(6, False).create(tmp_path / "t"))
    for number in (1, 3):
        table.insert([row(number)], QUICK)
    planned = table.schedule_clustering(options=QUICK)
    assert planned is not None
    for to in (8, 6):
        change(table, to)
        [pending] = table.timeline.select_pending()
        assert (pending.request_time, pending.action) == (planned, "replacecommit" if to == 6 else "clustering")
    before = rows(table)
    table.run_clustering(planned, options=QUICK)
    assert rows(table) == before


def test_a_failed_write_is_rolled_back_and_a_living_one_is_in_the_way(tmp_path: Path) -> None:
    table = fill(Kind(6, True), tmp_path / "t", QUICK)
    before = rows(table)
    plan = Plan(at=2, watched=("put_if_absent",))  # after the heartbeat and the requested file
    with pytest.raises(Killed):
        opened(FaultyFiles(TableFiles.open(table.uri), plan)).upsert([row(1, 30)], QUICK)
    table = HoodieTable.open(table.uri)
    assert len(table.timeline.select_pending()) == 1
    change(table, 8)
    assert rows(table) == before
    now = datetime.now(UTC)
    instant = f"{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03}"  # to the millisecond: after the change above
    for state in ("requested", "inflight"):
        (tmp_path / f"t/.hoodie/timeline/{instant}.deltacommit.{state}").write_bytes(b"")
    for to in (9, 6):
        with pytest.raises(ConflictError, match="its writer may be at work"):
            change(HoodieTable.open(table.uri), to)


def test_a_table_that_was_opened_before_goes_on(tmp_path: Path) -> None:
    mine = HoodieTable.open(Kind(6, False).create(tmp_path / "t"))
    mine.upsert([row(1)], QUICK)
    change(HoodieTable.open(mine.uri), 9)
    mine.upsert([row(1, 2), row(2, 2)], QUICK)
    assert mine.config.version == 9
    change(HoodieTable.open(mine.uri), 6)
    mine = mine.refresh()
    assert sorted(mine.scan().to_arrow()["ts"].to_pylist()) == [2, 2]
    mine.delete(["k1"], QUICK)
    assert len(HoodieTable.open(mine.uri).timeline.select_writes()) == 3


def test_a_copied_table_tells_no_completion_times(tmp_path: Path) -> None:
    """All files are younger than the last instant; log files stay in their slices."""
    table = fill(Kind(6, True), tmp_path / "t", QUICK)
    past = look_back(table)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "t", copy, copy_function=shutil.copyfile)
    copied_table = HoodieTable.open(copy)
    change(copied_table, 9)
    now = look_back(copied_table)
    assert {time: now[time] for time in past} == past
    assert all(
        each.completion_time == each.request_time for each in copied_table.timeline.select_writes().instants[:-1]
    )


@pytest.mark.parametrize(("kind", "to"), [(Kind(9, True), 6)], ids=str)  # the other way: integration/crash
def test_a_run_that_was_killed_anywhere_is_finished_by_the_next(kind: Kind, to: int, tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = fill(kind, base, INDEXES)
    before, past = rows(table), look_back(table)
    trace = Plan(watched=WRITES)
    change(opened(FaultyFiles(TableFiles.open(copied(base, tmp_path / "whole")), trace)), to)
    for at in range(len(trace.trace) // 6, len(trace.trace), len(trace.trace) // POINTS):
        cut = copied(base, tmp_path / "cut")
        plan = Plan(at=at, watched=WRITES)
        with pytest.raises(Killed):
            change(opened(FaultyFiles(TableFiles.open(cut), plan)), to)
        check_cut(cut, to, before, past, plan.trace[-1])


def check_cut(cut: Path, to: int, before: Any, past: dict[str, Any], place: str) -> None:
    between = HoodieTable.open(cut)
    assert rows(between) == before, place
    change(between, to) if between.config.version != to else between.upgrade(to, options=QUICK)
    again = HoodieTable.open(cut)
    assert again.config.version == to, place
    assert rows(again) == before, place
    now = look_back(again)
    assert {time: now[time] for time in past} == past, place
    assert orphans(cut) == [], place
    check_whole(again)
    again.upsert([row(2, 90)], INDEXES)


def test_what_a_version_cannot_hold_is_refused(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True).create(tmp_path / "partial", properties={}))
    with pytest.raises(InvalidQueryError, match="no way to table version 7"):
        table.upgrade(7)
    with pytest.raises(InvalidQueryError, match="is below that"):
        table.upgrade(8)
    with pytest.raises(InvalidQueryError, match="is above that"):
        HoodieTable.open(Kind(6, True).create(tmp_path / "six")).downgrade(8)
    merged = HoodieTable.open(writable("custom_highest_price_updates_mor_v9", tmp_path / "merged"))
    with pytest.raises(UnsupportedFeatureError, match="merged by a merger"):
        merged.downgrade(6)
    assert merged.config.version == 9


def test_a_complex_key_of_one_field_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    base = tmp_path / "t"

    table = HoodieTable.open(Kind(8, False).create(base, key_generator="COMPLEX"))
    with pytest.raises(UnsupportedFeatureError, match="complex key generator with one field"):
        table.upgrade(9)
    table.upgrade(9, options={"hoodie.write.complex.keygen.validation.enable": "false"})
    assert HoodieTable.open(base).config.version == 9


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("archived_timeline_mor_v6", (9,)),
        ("archived_timeline_mor_v9", (6,)),
        ("payload_partial_update_mor_v6", (9, 8)),
    ],
)
def test_javas_tables_keep_their_rows(name: str, path: tuple[int, ...], tmp_path: Path) -> None:
    table = HoodieTable.open(writable(name, tmp_path))
    before, archived = rows(table), {each.request_time for each in table._snapshot.timeline.read_archive().instants}
    for to in path:
        change(table, to)
        assert rows(table) == before
        assert {each.request_time for each in table._snapshot.timeline.read_archive().instants} == archived


@pytest.mark.parametrize(("before", "to", "theirs"), [(6, 8, 9), (9, 8, 6)])
def test_what_another_run_has_changed_is_not_changed_back(before: int, to: int, theirs: int, tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(before, False).create(tmp_path))
    table.upsert([row(0)], QUICK)

    def change_it() -> None:
        other = HoodieTable.open(tmp_path)
        (other.upgrade if theirs > before else other.downgrade)(to=theirs, options=QUICK)

    looked = asks(r"/\.hoodie/hoodie\.properties$", "read")
    refused = pytest.raises(InvalidQueryError, match=f"The table has version {theirs}")
    with meeting_request(looked, after=change_it), refused:
        (table.upgrade if to > before else table.downgrade)(to=to, options=QUICK)
    assert HoodieTable.open(tmp_path).config.version == theirs


TYPES = "hoodie.datasource.write.partitionpath.field"


@pytest.mark.parametrize("to", [8, 9])
def test_an_upgrade_stores_the_types_of_partition_fields_that_a_custom_key_generator_needs(
    to: int, tmp_path: Path
) -> None:
    """As Java's tables of version 6 have them: the properties name the fields alone."""
    schema = pa.schema([("id", pa.string()), ("at", pa.int64()), ("lv", pa.string())])
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    HoodieTable.create(
        tmp_path / "t", schema, record_key="id", partition_by=["at", "lv"], table_version=6,
        properties=times,
    )  # fmt: skip
    path = tmp_path / "t/.hoodie/hoodie.properties"
    lines = [each for each in path.read_text().splitlines() if "keygenerator" not in each]
    path.write_text(
        "\n".join([*lines, "hoodie.table.keygenerator.class=org.apache.hudi.keygen.CustomKeyGenerator", ""])
    )
    table = HoodieTable.open(tmp_path / "t")
    given = {**QUICK, TYPES: "at:timestamp,lv:SIMPLE"}
    one = [{"id": "a", "at": 1_700_000_000_000, "lv": "x"}]
    with pytest.raises(UnsupportedFeatureError, match=f"Give the option {TYPES}=at:TYPE,lv:TYPE"):
        table.upsert(one, options=QUICK)
    table.upsert(one, options=given)
    with pytest.raises(InvalidQueryError, match="the table's fields are at,lv"):
        table.upgrade(to, options={**QUICK, TYPES: "lv:SIMPLE"})
    table.upgrade(to, options=given)
    assert table.config.properties["hoodie.table.partition.fields"] == "at:TIMESTAMP,lv:SIMPLE"
    table.upsert(one, options=QUICK)
    assert [each.partition_path for each in table.file_slices()] == ["2023-11-14/x"]


@pytest.mark.parametrize("action", ["clean", "rollback"])
@pytest.mark.parametrize("alive", [True, False])
def test_a_service_at_work_keeps_the_version_as_it_is(action: str, alive: bool, tmp_path: Path) -> None:
    """What it tells the metadata table is prepared for the version that it began with."""
    table = HoodieTable.open(Kind(8, False).create(tmp_path))
    table.upsert([row(0)], QUICK)
    doing = session(tmp_path)
    now = doing.look()
    timeline = doing.open_timeline(now)
    pending = timeline.begin(timeline.request(doing.clock.take(), action, b""))
    with Heartbeat(doing.files, pending.request_time) if alive else nullcontext():
        if alive:
            with pytest.raises(ConflictError, match=f"A {action} is running") as caught:
                check_settled(doing, doing.look())
            assert caught.value.where["instant"] == pending.request_time
        else:
            check_settled(doing, doing.look())
