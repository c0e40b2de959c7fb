"""What a write says, and the timeline shows, where somebody took it for dead right before it completed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import CommitStateUnknownError, ConflictError, HoodieError, StorageError
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.lock import heartbeat
from hoodie_py.writer.lock.heartbeat import HEARTBEAT_FOLDER, Heartbeat
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from hoodie_py.writer.transaction.commit_protocol import begin_instant
from tests.watched_requests import dying_at, meeting_request, writes
from tests.writer.compaction_tables import QUICK, completed, leftovers, orphans, rows, writable
from tests.writer.slow_writes import COW, MOR, pending, start
from tests.writer.written_tables import Kind, contents, data_files, put, records, row, session

NO_LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.NoopLockProvider"}
MANY = {**NO_LOCK, **QUICK, "hoodie.clean.failed.writes.policy": "LAZY"}
KINDS = [MOR, COW, Kind(8, True), Kind(6, True), Kind(6, False)]


def before_the_completed_file(monkeypatch: pytest.MonkeyPatch, action: str, act: Callable[[Instant], None]) -> None:
    """Let something happen, once, between the last look and the completed file."""
    complete = TimelineWriter.complete
    left = [act]

    def sleeping(writer: TimelineWriter, inflight: Instant, time: str, content: bytes) -> Instant:
        if inflight.comparable_action == action and left and not writer._files.uri.endswith("metadata"):
            left.pop()(inflight)
        return complete(writer, inflight, time, content)

    monkeypatch.setattr(TimelineWriter, "complete", sleeping)


def take_for_dead(monkeypatch: pytest.MonkeyPatch, base: Path, instant: Instant) -> None:
    """Let others see that the heartbeat of an instant has stopped."""
    life_of, is_alive = heartbeat.read_life, heartbeat.is_alive

    def dead(files: Any, time: str, *args: Any, **kwargs: Any) -> Any:
        found = life_of(files, time, *args, **kwargs)
        return heartbeat.WriterLife(False, False, 0) if time == instant.request_time else found

    monkeypatch.setattr("hoodie_py.writer.rollback.recovery.read_life", dead)
    monkeypatch.setattr(
        heartbeat,
        "is_alive",
        lambda files, time, *args, **kwargs: time != instant.request_time and is_alive(files, time),
    )


@pytest.mark.parametrize("operation", [WriteOperation.UPSERT, WriteOperation.DELETE, WriteOperation.INSERT])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_write_that_was_rolled_back_is_no_success(
    kind: Kind, operation: WriteOperation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, kind)
    before, files = contents(tmp_path), data_files(tmp_path)
    slept: list[str] = []

    def rolled_back(instant: Instant) -> None:
        slept.append(instant.request_time)
        with monkeypatch.context() as patched:
            take_for_dead(patched, tmp_path, instant)
            put(tmp_path, records([row(3, 2, "theirs")]), options=MANY)

    action = "deltacommit" if kind.merge_on_read else "commit"
    before_the_completed_file(monkeypatch, action, rolled_back)
    given = records([row(40 if operation is WriteOperation.INSERT else 0, 2)])
    with pytest.raises(ConflictError, match="rolled it back while it was being completed"):
        put(tmp_path, given, operation, options=NO_LOCK)
    assert contents(tmp_path) == {**before, "k3": (2, "theirs")}
    timeline = HoodieTable.open(tmp_path).timeline
    assert timeline.find(slept[0]) is None
    assert len(timeline.select_actions("rollback")) == 1
    assert (pending(tmp_path), leftovers(tmp_path)) == ([], [])
    assert len(data_files(tmp_path) - files) == 1


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_write_beside_another_that_took_no_lock_either(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both looked before the other completed: who comes second sees it, and gives up."""
    start(tmp_path, kind)
    before = contents(tmp_path)

    def another(_: Instant) -> None:
        put(tmp_path, records([row(2, 2, "theirs")]), options=MANY)

    before_the_completed_file(monkeypatch, "deltacommit" if kind.merge_on_read else "commit", another)
    with pytest.raises(ConflictError, match="changed a file group of this write"):
        put(tmp_path, records([row(0, 2, "ours")]), options=MANY)
    assert contents(tmp_path) == {**before, "k2": (2, "theirs")}
    assert (pending(tmp_path), leftovers(tmp_path), orphans(tmp_path)) == ([], [], [])


@pytest.mark.parametrize("how", ["lock", "heartbeat", "look"])
@pytest.mark.parametrize("kind", [MOR, COW, Kind(6, True)], ids=str)
def test_what_nobody_undid_stands_but_is_not_called_done(
    kind: Kind, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, kind)
    before = contents(tmp_path)
    patched = pytest.MonkeyPatch()

    def lost(_: Instant) -> None:
        def refuse(*_: Any) -> None:
            raise StorageError("not now") if how == "look" else ConflictError("lost")

        where: Any = {"lock": HeldLock, "heartbeat": Heartbeat, "look": WriteSession}[how]
        patched.setattr(where, {"lock": "ensure_held", "heartbeat": "ensure_alive", "look": "look"}[how], refuse)

    before_the_completed_file(monkeypatch, "deltacommit" if kind.merge_on_read else "commit", lost)
    with patched.context(), pytest.raises(CommitStateUnknownError, match="is complete, but") as caught:
        put(tmp_path, records([row(0, 2, "ours")]))
    patched.undo()
    assert "Look whether the instant is in the table" in str(caught.value)
    assert contents(tmp_path) == {**before, "k0": (2, "ours")}
    put(tmp_path, records([row(1, 2, "next")]))
    assert contents(tmp_path) == {**before, "k0": (2, "ours"), "k1": (2, "next")}
    assert (pending(tmp_path), leftovers(tmp_path)) == ([], [])


@pytest.mark.parametrize("name", ["basic_mor_v9_part", "basic_mor_v6_part", "mdt_files_mor_v9", "mdt_all_mor_v6"])
def test_a_compaction_that_was_taken_back_is_no_success(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = writable(name, tmp_path)
    before = rows(HoodieTable.open(base))
    had = completed(HoodieTable.open(base), "commit")
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))

    def taken_back(inflight: Instant) -> None:
        with monkeypatch.context() as patched:
            take_for_dead(patched, base, inflight)
            HoodieTable.open(base).rollback(instant, options=MANY)

    before_the_completed_file(monkeypatch, "commit", taken_back)
    with pytest.raises(ConflictError, match="rolled it back while it was being completed"):
        HoodieTable.open(base).run_compaction(instant, options={**QUICK, **NO_LOCK})
    table = HoodieTable.open(base)
    assert rows(table) == before
    found = table.timeline.find(instant)
    assert found is not None
    assert (found.action, found.state) == ("compaction", "requested")
    assert completed(table, "commit") == had
    assert (orphans(base), leftovers(base)) == ([], [])
    HoodieTable.open(base).run_compaction(instant, options=QUICK)
    assert rows(HoodieTable.open(base), "read_optimized") == before


def test_a_clean_that_was_taken_back_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = writable("compaction_inline_rounds_mor_v9", tmp_path)
    HoodieTable.open(base).compact(options=QUICK)
    before, had = rows(HoodieTable.open(base)), completed(HoodieTable.open(base), "clean")

    def taken_back(inflight: Instant) -> None:
        (base / HoodieTable.open(base).config.find_timeline_folder() / inflight.file_name(2)).unlink()

    before_the_completed_file(monkeypatch, "clean", taken_back)
    with pytest.raises(ConflictError, match="rolled it back while it was being completed"):
        HoodieTable.open(base).clean(1, options=QUICK)
    assert completed(HoodieTable.open(base), "clean") == had
    assert HoodieTable.open(base).clean(1, options=QUICK).instant is not None
    assert rows(HoodieTable.open(base)) == before


def test_the_metadata_table_forgets_a_write_that_told_it_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It slept before it told the metadata table, and finds out right after that its heartbeat had stopped."""
    base = writable("mdt_files_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
    given = table.scan(columns=names, limit=2).to_arrow()
    seen: list[str] = []

    def roll_back() -> None:
        with monkeypatch.context() as patched:
            [own] = HoodieTable.open(base).timeline.select_pending().instants
            seen.append(own.request_time)
            take_for_dead(patched, base, own)
            HoodieTable.open(base).rollback(own.request_time, options=MANY)

    told = writes(r"/metadata/\.hoodie/(timeline/)?[\d_]+\.deltacommit$")
    with meeting_request(told, before=roll_back), pytest.raises(HoodieError):
        table.upsert(given, options={**QUICK, **NO_LOCK})
    assert rows(HoodieTable.open(base)) == before
    assert HoodieTable.open(base / ".hoodie/metadata").timeline.find(seen[0]) is None
    assert not (base / HEARTBEAT_FOLDER / seen[0]).exists()
    assert open_snapshot(HoodieTable.open(base).files).timeline.find(seen[0]) is None


@pytest.mark.parametrize("kind", [MOR, COW, Kind(6, True)], ids=str)
def test_a_commit_that_another_already_rests_on_stands(kind: Kind, tmp_path: Path) -> None:
    start(tmp_path, kind)
    before = contents(tmp_path)

    def rest_on_it() -> None:
        put(tmp_path, records([row(0, 3, "theirs"), row(2, 3, "theirs")]), options=MANY)

    complete = writes(rf"^{tmp_path}/\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$")
    with (
        meeting_request(complete, after=rest_on_it),
        pytest.raises(CommitStateUnknownError, match="is complete, but"),
    ):
        put(tmp_path, records([row(0, 2, "ours"), row(4, 2, "ours")]), options=MANY)
    theirs = {"k0": (3, "theirs"), "k2": (3, "theirs")}
    assert contents(tmp_path) == {**before, **theirs, "k4": (2, "ours")}


def died(base: Path, monkeypatch: pytest.MonkeyPatch, given: Any, options: Any) -> str:
    """Write, be rolled back, complete, and die before the second look; return the instant."""
    seen: list[str] = []

    def rolled_back(instant: Instant) -> None:
        seen.append(instant.request_time)
        with monkeypatch.context() as patched:
            take_for_dead(patched, base, instant)
            HoodieTable.open(base).rollback(instant.request_time, options=MANY)

    with monkeypatch.context() as patched:
        for action in ("commit", "deltacommit"):
            before_the_completed_file(patched, action, rolled_back)
        completed = writes(rf"^{base}/\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$")
        with dying_at(completed, after=True), pytest.raises(SystemExit):
            HoodieTable.open(base).upsert(given, options)
    return seen[0]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_write_that_is_completed_and_rolled_back_counts_for_nothing(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, kind)
    before = contents(tmp_path)
    instant = died(tmp_path, monkeypatch, [row(0, 9, "slept"), row(40, 9, "slept")], {**QUICK, **NO_LOCK})
    folder = tmp_path / HoodieTable.open(tmp_path).config.find_timeline_folder()
    assert len(list(folder.glob(f"{instant}*"))) == 1, "its completed file is there"
    assert instant not in {each.request_time for each in HoodieTable.open(tmp_path).timeline}
    assert contents(tmp_path) == before
    assert contents(tmp_path, integrity="strict") == before
    put(tmp_path, records([row(1, 2, "next")]))
    assert list(folder.glob(f"{instant}*")) == []
    assert contents(tmp_path) == {**before, "k1": (2, "next")}
    assert (pending(tmp_path), leftovers(tmp_path), orphans(tmp_path)) == ([], [], [])


def test_nor_does_what_the_metadata_table_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
    given = table.scan(columns=names, limit=2).to_arrow()
    instant = died(base, monkeypatch, given, {**QUICK, **NO_LOCK})
    assert rows(HoodieTable.open(base)) == before
    HoodieTable.open(base).upsert(given, QUICK)
    assert not [path for path in base.rglob("*") if instant in path.name and "rollback" not in path.name]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", [MOR, COW, Kind(6, True)], ids=str)
def test_nor_what_it_was_told_by_a_write_that_died_right_after(
    kind: Kind, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It slept before it told the metadata table, was rolled back meanwhile, and died before its completed file."""
    options = {**QUICK, "hoodie.metadata.enable": "true"}
    table = HoodieTable.open(kind.create(tmp_path))
    table.upsert([row(i) for i in range(8)], options)
    before = contents(tmp_path)

    def roll_back() -> None:
        with monkeypatch.context() as patched:
            [own] = HoodieTable.open(tmp_path).timeline.select_pending().instants
            take_for_dead(patched, tmp_path, own)
            HoodieTable.open(tmp_path).rollback(own.request_time, options=MANY)

    completed = r"\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$"
    told = writes(rf"/metadata/{completed}" if when == "after" else "/metadata/")
    with monkeypatch.context() as patched:
        patched.setattr(Heartbeat, "ensure_own", lambda *_: None)  # it falls asleep right after it looked
        died = dying_at(writes(rf"^{tmp_path}/{completed}"))
        with died, meeting_request(told, before=roll_back), pytest.raises(SystemExit):
            table.upsert([row(0, 9, "slept"), {**row(40, 9, "slept"), "part": "new"}], options={**options, **NO_LOCK})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The metadata table of table .* is not used")  # its files went, when "after"
        [due] = [each for each in HoodieTable.open(tmp_path).services().services if each.name == "metadata table"]
        assert "1 commits of writes that were rolled back" in due.why
        HoodieTable.open(tmp_path).upsert([row(1, 2, "next")], options=options)
    assert contents(tmp_path) == {**before, "k1": (2, "next")}
    report = HoodieTable.open(tmp_path).verify()
    assert report.is_right, str(report)


def test_writes_without_their_first_files_count(tmp_path: Path) -> None:
    """As while they are archived, beside a rollback of something else."""
    base = writable("rollback_completed_mor_v6", tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    known = [each for each in table.timeline if each.is_completed and each.is_write]
    for each in known:
        for state in ("requested", "inflight"):
            (base / ".hoodie" / f"{each.request_time}.{each.action}.{state}").unlink(missing_ok=True)
    assert [each for each in HoodieTable.open(base).timeline if each.is_completed and each.is_write] == known
    assert rows(HoodieTable.open(base)) == before


@pytest.mark.parametrize("name", ["basic_mor_v9_part", "mdt_files_mor_v9"])
def test_a_compaction_that_another_completed_meanwhile_is_no_success(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run took this one for dead and ran the plan again; its rollback is archived by now."""
    base = writable(name, tmp_path)
    before = rows(HoodieTable.open(base))
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    folder = base / HoodieTable.open(base).config.find_timeline_folder()
    theirs: list[Path] = []

    def run_again(_: Instant) -> None:
        content = next(folder.glob("*.commit"), None)
        theirs.append(folder / f"{instant}_{int(instant) + 1}.commit")
        theirs[0].write_bytes(b"" if content is None else content.read_bytes())

    before_the_completed_file(monkeypatch, "commit", run_again)
    with pytest.raises(ConflictError, match="rolled it back while it was being completed"):
        HoodieTable.open(base).run_compaction(instant, options={**QUICK, **NO_LOCK})
    assert list(folder.glob(f"{instant}_*.commit")) == theirs, "only this run's completed file went"
    theirs[0].unlink()
    assert rows(HoodieTable.open(base)) == before


@pytest.mark.parametrize("requested_is_there", [True, False])
def test_a_lone_inflight_file_does_not_stay(requested_is_there: bool, tmp_path: Path) -> None:
    """Another writer removed the requested file, for the rollback of a writer that it judged dead, which then woke."""
    start(tmp_path)
    doing = session(tmp_path)
    now = doing.look()
    timeline = doing.open_timeline(now)
    requested = timeline.request(doing.clock.take(), "deltacommit", b"")

    class Dead(Heartbeat):
        def ensure_own(self, holding: HeldLock) -> None:
            if not requested_is_there:
                timeline.remove(requested)
            raise ConflictError("The heartbeat stopped")

    alive = Dead(doing.files, requested.request_time)
    with doing.hold_lock() as holding, pytest.raises(ConflictError, match="The heartbeat stopped"):
        begin_instant(doing, now, requested, alive, holding)
    assert pending(tmp_path) == (["deltacommit inflight"] if requested_is_there else [])
