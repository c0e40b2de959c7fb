"""Properties and their backup, the timeline, its metadata and its archive.

Commits that one state of a table has read, for the states after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import (
    ConflictError,
    CorruptFileError,
    InvalidTableError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.plans import CleanMetadata
from hoodie_py.table.timeline.loader import KnownCommits, TableTimeline, load_config, load_timeline
from tests.corpus import corpus_names, load_case
from tests.table.tables import V6, make_table, open_view, properties_text
from tests.watched_requests import Request, find_read_commits
from tests.writer.written_tables import QUICK

T1, T2 = "20260101000001000", "20260101000002000"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def files_of(root: Path) -> TableFiles:
    return TableFiles.open(str(root))


def test_no_table(tmp_path: Path, no_waiting: list[float]):
    for root in (tmp_path, tmp_path / "missing"):
        with pytest.raises(TableNotFoundError):
            load_config(files_of(root))
    assert no_waiting == []


def test_metadata_folder_without_properties(tmp_path: Path, no_waiting: list[float]):
    (tmp_path / ".hoodie" / "timeline").mkdir(parents=True)
    with pytest.raises(TableNotFoundError):
        load_config(files_of(tmp_path))
    assert len(no_waiting) == 4


@pytest.mark.parametrize("main", [None, b"", b"hoodie.table.name=t\nhoodie.table.checksum=1\nhoodie.table.version=9\n"])
def test_backup_stands_in_for_missing_or_torn_properties(tmp_path: Path, main: bytes | None, no_waiting: list[float]):
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "hoodie.properties.backup").write_bytes(properties_text("backup"))
    if main is not None:
        (tmp_path / ".hoodie" / "hoodie.properties").write_bytes(main)
    assert load_config(files_of(tmp_path)).name == "backup"
    assert no_waiting == []


def test_properties_that_come_back_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "hoodie.properties").write_bytes(b"hoodie.table.na")
    monkeypatch.setattr(time, "sleep", lambda _: make_table(tmp_path))
    assert load_config(files_of(tmp_path)).name == "t"


def test_torn_properties_for_good(tmp_path: Path, no_waiting: list[float]):
    make_table(tmp_path, **{"hoodie.table.checksum": "1"})
    with pytest.raises(InvalidTableError, match="hecksum"):
        load_config(files_of(tmp_path))
    assert len(no_waiting) == 4


def test_unsupported_versions_and_formats_fail_at_once(tmp_path: Path, no_waiting: list[float]):
    make_table(tmp_path / "v", **{"hoodie.table.version": "7"})
    make_table(tmp_path / "f", **{"hoodie.table.format": "iceberg"})
    for root in (tmp_path / "v", tmp_path / "f"):
        with pytest.raises(UnsupportedFeatureError):
            load_config(files_of(root))
    assert no_waiting == []


def test_no_timeline_folder_is_an_empty_timeline(tmp_path: Path):
    files = files_of(make_table(tmp_path))
    assert list(load_timeline(files, load_config(files))) == []


@pytest.mark.parametrize("name", corpus_names())
def test_timeline_is_that_of_the_case(name: str, corpus: Callable[[str], Path]):
    timeline = open_view(corpus(name)).timeline
    found = {(each.request_time, each.action, each.state): each for each in timeline}
    for commit in load_case(name).get("commits", ()):
        instant = found[commit["instant"], commit["action"], commit["state"]]
        if instant.is_completed and timeline.config.version >= 8:
            assert instant.completion_time == commit["completion"]


def test_metadata_is_read_once_and_by_many_threads(corpus: Callable[[str], Path]):
    timeline = open_view(corpus("basic_mor_v9_part")).timeline
    writes = timeline.list_completed_writes()
    with ThreadPoolExecutor(8) as pool:
        rounds = list(pool.map(lambda _: timeline.read_all_metadata(writes), range(8)))
    assert all(each == rounds[0] for each in rounds)
    assert timeline.read_metadata(writes[0]) is timeline.read_metadata(writes[0])
    assert all(metadata.schema for metadata in rounds[0])


def test_damaged_metadata_names_file_and_instant(tmp_path: Path):
    make_table(tmp_path, {f".hoodie/timeline/{T1}_{T2}.deltacommit": b"\0\1\2"})
    timeline = open_view(tmp_path).timeline
    with pytest.raises(CorruptFileError) as caught:
        timeline.read_metadata(timeline.list_completed_writes()[0])
    assert caught.value.where["path"] == f".hoodie/timeline/{T1}_{T2}.deltacommit"
    assert caught.value.where["instant"] == T1


def test_a_clean_that_is_gone(tmp_path: Path):
    name = f".hoodie/timeline/{T1}_{T2}.clean"
    timeline = open_view(make_table(tmp_path, {name: b"{}"})).timeline
    (tmp_path / name).unlink()
    with pytest.raises(ConflictError, match="is gone since the timeline was listed"):
        timeline.read_instant_file(timeline.instants[0], CleanMetadata.from_bytes)


def test_metadata_that_is_gone(tmp_path: Path):
    name = f".hoodie/timeline/{T1}_{T2}.deltacommit"
    timeline = open_view(make_table(tmp_path, {name: b"{}"})).timeline
    (tmp_path / name).unlink()
    with pytest.raises(ConflictError, match="is gone since the timeline was listed"):
        timeline.read_metadata(timeline.list_completed_writes()[0])


ARCHIVED = [name for name in corpus_names() if name.startswith("archived_timeline") or "archive" in name]


@pytest.mark.parametrize("name", ARCHIVED)
def test_archive_goes_on_where_the_active_timeline_begins(name: str, corpus: Callable[[str], Path]):
    timeline = open_view(corpus(name)).timeline
    archived = timeline.read_archive()
    assert archived.instants
    first = timeline.first_active_time
    assert first is not None
    assert all(time < first for time in archived.completion_times)
    for requested, completion in archived.completion_times.items():
        assert timeline.find_completion_time(requested) == completion >= requested
        assert archived.read_metadata(requested).schema
    newest = next(archived.iterate_writes_back_from(first))[0]
    assert newest == max(archived.completion_times)
    assert archived.read_metadata("19990101000000000") is None


def test_metadata_of_an_instant_that_was_archived_meanwhile(corpus_copy: Callable[[str], Path]):
    root = corpus_copy("archived_timeline_mor_v9")
    timeline = open_view(root).timeline
    time, completion = next(iter(timeline.read_archive().completion_times.items()))
    name = f".hoodie/timeline/{time}_{completion}.deltacommit"
    (root / name).write_bytes(b"{}")
    late = open_view(root).timeline
    (root / name).unlink()
    assert late.read_metadata(late.list_completed_writes()[0]) == timeline.read_archive().read_metadata(time)


def test_history_that_is_not_there(corpus_copy: Callable[[str], Path]):
    root = corpus_copy("archived_timeline_mor_v9")
    history = root / ".hoodie" / "timeline" / "history"
    (history / "_version_").write_bytes(b"x")
    assert open_view(root).timeline.read_archive().instants
    for file in history.glob("*.parquet"):
        file.unlink()
    with pytest.raises(InvalidTableError):
        open_view(root).timeline.read_archive()
    for file in history.glob("manifest_*"):
        file.unlink()
    assert open_view(root).timeline.read_archive().instants == ()


def test_no_archive(tmp_path: Path):
    assert open_view(make_table(tmp_path / "new")).timeline.read_archive().instants == ()
    assert open_view(make_table(tmp_path / "old", **V6)).timeline.read_archive().instants == ()


def test_compaction_plans(corpus: Callable[[str], Path]):
    for name in ("compaction_pending_mor_v6", "compaction_pending_mor_v9"):
        timeline = open_view(corpus(name)).timeline
        (pending,) = timeline.select_pending_compactions()
        plan = timeline.find_compaction_plan(pending.request_time)
        assert plan.operations
        assert all(each.delta_files for each in plan.operations)
        assert timeline.find_compaction_plan(timeline.list_completed_writes()[0].request_time) is None
        assert timeline.find_compaction_plan("20990101000000000") is None


def test_earliest_retained(corpus: Callable[[str], Path]):
    cleaned = open_view(corpus("clean_cow_v9")).timeline
    assert cleaned.find_earliest_retained() is not None
    assert open_view(corpus("basic_mor_v9_part")).timeline.find_earliest_retained() is None


def test_timeline_of_a_table_opened_twice(corpus: Callable[[str], Path]):
    root = corpus("basic_mor_v6_part")
    files = files_of(root)
    config = load_config(files)
    assert TableTimeline.load(files, config) == load_timeline(files, config)


_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


def _create(path: Path, version: int) -> HoodieTable:
    return HoodieTable.create(path, _SCHEMA, record_key="id", partition_by="part", table_version=version)


def _write(table: HoodieTable) -> None:
    table.upsert(pa.table({"id": ["a"], "part": ["p"]}, schema=_SCHEMA), QUICK)


@pytest.mark.parametrize("version", [6, 9])
def test_writes_in_a_row_read_each_commit_once(tmp_path: Path, version: int, requests_made: list[Request]) -> None:
    table = _create(tmp_path, version)
    for _ in range(6):
        _write(table)
    reads = find_read_commits(requests_made, tmp_path)
    assert len(reads) == len(set(reads)) > 0
    table.refresh().file_slices()
    reads = find_read_commits(requests_made, tmp_path)
    assert len(reads) == len(set(reads))


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    ("action", "operation", "in_layout_1"),
    [
        ("deltacommit", "UPSERT", True),
        ("commit", "INSERT", True),
        ("commit", "COMPACT", False),
        ("deltacommit", "LOG_COMPACT", False),
        ("replacecommit", "CLUSTER", False),
        ("replacecommit", "INSERT_OVERWRITE", False),
        ("commit", "UNKNOWN", False),
    ],
)
def test_what_may_run_again_at_the_same_time_is_not_kept(
    tmp_path: Path, version: int, action: str, operation: str, in_layout_1: bool
) -> None:
    known, config = KnownCommits(), _create(tmp_path, version).config
    instant = Instant("20260101000000000", "20260101000001000", action, "completed")
    metadata = CommitMetadata(operation)
    known.add(instant, metadata, config)
    assert (known.get(instant) is metadata) == (version == 9 or in_layout_1)
    legacy = replace(instant, is_legacy=True)
    known.add(legacy, metadata, config)
    assert known.get(legacy) is None


def test_the_first_ones_are_forgotten_first(tmp_path: Path) -> None:
    known, config = KnownCommits(most_stats=4), _create(tmp_path, 9).config
    instants = [Instant(f"{number}", f"{number}", "deltacommit", "completed") for number in range(5)]
    stats = (WriteStat("a", "p/a"), WriteStat("b", "p/b"))
    for each in instants[:3]:
        known.add(each, CommitMetadata("UPSERT", write_stats={"p": stats}), config)
        known.stats_of_logs[each.request_time] = {}
    assert [known.get(each) is None for each in instants] == [True, False, False, True, True]
    assert list(known.stats_of_logs) == ["1", "2"]
    known.add(instants[3], CommitMetadata("UPSERT", write_stats={"p": stats * 3}), config)  # too many alone
    assert known.get(instants[3]) is None
    assert known.get(instants[2]) is not None
