"""What must have been looked at and told before a completed file is made; each test fails where that is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.writer.commit import write_commit
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.services import planned_service
from hoodie_py.writer.services.compaction_task import CompactionTask, OnRows
from hoodie_py.writer.timeline.session import InstantClock
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from tests.writer.compaction_tables import QUICK, completed, rows, writable
from tests.writer.indexes.test_metadata_table import records as told
from tests.writer.slow_writes import COW, MOR, pending, start
from tests.writer.written_tables import Kind, contents, data_files, put, records, row

WITH_METADATA = ["mdt_files_mor_v9", "old15_metadata_mor"]


def sources(base: Path) -> Any:
    """Two rows of a table, as a caller would write them."""
    table = HoodieTable.open(base)
    names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
    return table.scan(columns=names, limit=2).to_arrow()


def upsert(base: Path) -> None:
    HoodieTable.open(base).upsert(sources(base), QUICK)


def insert(base: Path) -> None:
    HoodieTable.open(base).insert(sources(base), QUICK)


def delete(base: Path) -> None:
    HoodieTable.open(base).delete(sources(base), QUICK)


def overwrite(base: Path) -> None:
    HoodieTable.open(base).insert_overwrite_table(sources(base), QUICK)


def compact(base: Path) -> None:
    upsert(base)
    assert HoodieTable.open(base).compact(options=QUICK).instant is not None


def clean(base: Path) -> None:
    for _ in range(3):
        compact(base)
    assert HoodieTable.open(base).clean(1, options=QUICK).files_deleted


CHANGES = [upsert, insert, delete, overwrite, compact, clean]


# The look at lock and heartbeat ------------------------------------------------------------------------------------


def lost_once(monkeypatch: pytest.MonkeyPatch, what: str, when: str, completion: int) -> list[str]:
    """Let lock or heartbeat be lost from a moment of the commit on, and return what is told and completed.

    Args:
        monkeypatch: undoes it.
        what: "lock" or "heartbeat".
        when: "before the metadata table" or "before the completed file".
        completion: which of the times that are taken is that of the completion.
    """
    lost: list[bool] = []
    made: list[str] = []
    times: list[str] = []
    holder: Any = HeldLock if what == "lock" else Heartbeat
    verb = "ensure_held" if what == "lock" else "ensure_alive"
    plain, following = getattr(holder, verb), InstantClock.take
    complete, commit = TimelineWriter.complete, MetadataTable.commit

    def asked(self: Any) -> None:
        if lost:
            raise ConflictError("lost")
        plain(self)

    def next_time(self: InstantClock, beyond: str = "") -> str:
        times.append(beyond)
        if when == "before the completed file" and len(times) == completion:
            lost.append(True)
        return following(self, beyond)

    def tell(self: MetadataTable, change: MetadataCommit, *checks: Any) -> None:
        made.append("metadata table")
        commit(self, change, *checks)

    def complete_it(self: TimelineWriter, inflight: Instant, time: str, content: bytes) -> Instant:
        made.append(inflight.action)
        return complete(self, inflight, time, content)

    monkeypatch.setattr(holder, verb, asked)
    monkeypatch.setattr(InstantClock, "take", next_time)
    monkeypatch.setattr(MetadataTable, "commit", tell)
    monkeypatch.setattr(TimelineWriter, "complete", complete_it)
    if when == "before the metadata table":
        for module, name in ((write_commit, "_settle_files"), (planned_service, "remove_files")):
            monkeypatch.setattr(module, name, _then(lost, getattr(module, name)))
    return made


def _then(lost: list[bool], plain: Callable[..., Any]) -> Callable[..., Any]:
    def act(*args: Any, **kwargs: Any) -> Any:
        answer = plain(*args, **kwargs)
        lost.append(True)
        return answer

    return act


@pytest.mark.parametrize("when", ["before the metadata table", "before the completed file"])
@pytest.mark.parametrize("what", ["lock", "heartbeat"])
@pytest.mark.parametrize("kind", [MOR, COW, Kind(6, True), Kind(6, False)], ids=str)
def test_a_write_that_lost_its_lock_or_heartbeat_completes_nothing(
    kind: Kind, what: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, kind)
    before, files = contents(tmp_path), data_files(tmp_path)
    with monkeypatch.context() as patched:
        made = lost_once(patched, what, when, 2)
        with pytest.raises(ConflictError):
            put(tmp_path, records([row(0, 2)], partitioned=kind.partitioned))
    assert made == []  # these tables have no metadata table
    assert contents(tmp_path) == before
    assert (data_files(tmp_path), pending(tmp_path)) == (files, [])


@pytest.mark.parametrize("when", ["before the metadata table", "before the completed file"])
@pytest.mark.parametrize("what", ["lock", "heartbeat"])
@pytest.mark.parametrize("name", ["basic_mor_v9_part", "basic_mor_v6_part"])
def test_a_compaction_that_lost_its_lock_or_heartbeat_completes_nothing(
    name: str, what: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = writable(name, tmp_path)
    before = rows(HoodieTable.open(base))
    had = completed(HoodieTable.open(base), "commit")
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    with monkeypatch.context() as patched:
        made = lost_once(patched, what, when, 1)
        with pytest.raises(ConflictError):
            HoodieTable.open(base).run_compaction(instant, options=QUICK)
    assert "compaction" not in made
    assert rows(HoodieTable.open(base)) == before
    assert completed(HoodieTable.open(base), "commit") == had


# The second look of a compaction -----------------------------------------------------------------------------------


class Meanwhile:
    """A runner that does something to the table when all tasks are done."""

    def __init__(self, act: Callable[[CompactionTask], None]) -> None:
        self._act = act

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        results = [task.run(on_rows) for task in tasks]
        self._act(tasks[0])
        return iter(results)


def a_planned_log_file_goes(base: Path, task: CompactionTask) -> None:
    (base / task.file_slice.log_files[0].path).unlink()


def a_log_file_comes_below(base: Path, task: CompactionTask) -> None:
    """One that the plan leaves out: its rows would be lost."""
    log = task.file_slice.log_files[-1]
    name = log.name.name.replace(f".log.{log.name.version}_", f".log.{log.name.version + 1}_")
    (base / log.path).with_name(name).write_bytes((base / log.path).read_bytes())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("basic_mor_v9_part", a_planned_log_file_goes),
        ("basic_mor_v6_part", a_planned_log_file_goes),
        ("basic_mor_v6_part", a_log_file_comes_below),  # from version 8 on its name would say that it is later
    ],
)
def test_a_compaction_looks_at_its_slices_once_more(
    name: str, change: Callable[[Path, CompactionTask], None], tmp_path: Path
) -> None:
    base = writable(name, tmp_path)
    had = completed(HoodieTable.open(base), "commit")
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    with pytest.raises(InvalidTableError, match=r"a compaction plan (names|leaves out)"):
        HoodieTable.open(base).run_compaction(instant, Meanwhile(lambda task: change(base, task)), QUICK)
    assert completed(HoodieTable.open(base), "commit") == had


# The metadata table ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_METADATA)
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_the_metadata_table_is_told_the_size_of_each_file(
    change: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    base = writable(name, tmp_path)
    known = {each.request_time for each in HoodieTable.open(base).timeline}
    before = data_files(base)
    change(base)
    sizes: dict[str, int] = {}
    gone: set[str] = set()
    new = [each for each in HoodieTable.open(base).timeline if each.request_time not in known and each.is_completed]
    for instant in new:
        for partition, record in told(base, instant.request_time).items():
            if record["type"] == 2:
                for file, info in record["filesystemMetadata"].items():
                    path = f"{partition}/{file}" if partition != "." else file
                    gone.add(path) if info["isDeleted"] else sizes.update({path: info["size"]})
    there = {path: (base / path).stat().st_size for path in data_files(base) - before}
    assert there or change is clean
    assert {path: size for path, size in sizes.items() if path not in gone} == there
    assert not any((base / path).exists() for path in gone)
    if change is clean:
        assert gone


@pytest.mark.parametrize("name", WITH_METADATA)
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_the_metadata_table_is_told_before_the_completed_file(
    change: Callable[[Path], None], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = writable(name, tmp_path)
    made: list[tuple[str, bool]] = []
    create = TableFiles.put_if_absent

    def noted(self: TableFiles, path: str, data: bytes, *, unique: bool = False) -> None:
        create(self, path, data, unique=unique)
        file = path.rpartition("/")[2]
        if (
            ".heartbeat" not in path
            and ".requested" not in file
            and ".inflight" not in file
            and file.split("_")[0].split(".")[0].isdigit()
        ):
            made.append((file.split("_")[0].split(".")[0], self.uri.endswith("metadata")))

    monkeypatch.setattr(TableFiles, "put_if_absent", noted)
    change(base)
    instants = list(dict.fromkeys(instant for instant, is_metadata in made if not is_metadata))
    told = [each for each in made if each[0] in instants]  # others are the metadata table's own compactions and cleans
    assert told == [(instant, is_metadata) for instant in instants for is_metadata in (True, False)]
    assert instants
