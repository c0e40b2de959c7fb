"""The change-data file beside a rewritten base file: its name, its place in the statistics, and what failures leave."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, StorageError
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.writer.records import WriteOperation
from tests.watched_requests import Request, dying_at, watching_requests, writes
from tests.writer.change_tables import list_change_files, read_records
from tests.writer.compaction_tables import QUICK, leftovers
from tests.writer.slow_writes import slowly
from tests.writer.written_tables import KINDS, Kind, contents, data_files, put, records, row

COW = Kind(9, merge_on_read=False, partitioned=False)


def start(base: Path, kind: Kind = COW, mode: str = "DATA_BEFORE_AFTER") -> Path:
    replace(kind, captures=True).create(base, properties={"hoodie.table.cdc.supplemental.logging.mode": mode})
    put(base, records([row(i, 5) for i in range(6)], partitioned=kind.partitioned), WriteOperation.INSERT)
    return base


def newest_stats(base: Path) -> list[WriteStat]:
    timeline = HoodieTable.open(base)._snapshot.timeline
    return list(timeline.read_metadata(timeline.list_completed_writes()[-1]).iterate_stats())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.merge_on_read], ids=str)
def test_a_rewrite_says_what_it_changed(kind: Kind, tmp_path: Path) -> None:
    start(tmp_path, kind)
    assert list_change_files(tmp_path) == [], "the changes of a new file group are its rows"
    table = HoodieTable.open(tmp_path)
    table.upsert([row(0, 4), row(1, 6, "b"), row(9, 1)], options=QUICK)
    found = [record for path in list_change_files(tmp_path) for record in read_records(path)]
    changes = {(each["op"], (each["before"] or each["after"])["id"]) for each in found}
    assert changes == {("u", "k1"), ("i", "k9")}
    [updated] = [each for each in found if each["op"] == "u"]
    assert updated["before"] == row(1, 5)
    assert updated["after"] == row(1, 6, "b")
    instant = HoodieTable.open(tmp_path).timeline.select_writes().instants[-1].request_time
    assert {each["ts_ms"] for each in found} == {instant}
    for stat in newest_stats(tmp_path):
        [(path, size)] = stat.cdc_stats.items()
        assert (tmp_path / path).stat().st_size == size
        log, base = parse_log_file_name(Path(path).name), parse_base_file_name(stat.file_name or "")
        assert log is not None
        assert base is not None
        assert (log.file_id, log.instant, log.write_token) == (base.file_id, base.instant, base.write_token)
        assert (log.version, log.suffix) == (1, ".cdc")
        assert Path(path).parent == Path(stat.path or "").parent
    before = set(list_change_files(tmp_path))
    HoodieTable.open(tmp_path).delete([row(3, 6), row(8, 1)], options=QUICK)
    found = [record for path in list_change_files(tmp_path) if path not in before for record in read_records(path)]
    assert [(each["op"], each["before"], each["after"]) for each in found] == [("d", row(3, 5), None)]
    assert contents(tmp_path, integrity="strict")["k1"] == (6, "b")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE"])
def test_modes_with_keys(mode: str, tmp_path: Path) -> None:
    start(tmp_path, mode=mode)
    HoodieTable.open(tmp_path).upsert([row(9)], options=QUICK)
    HoodieTable.open(tmp_path).delete([row(0, 6)], options=QUICK)
    found = {each.pop("record_key"): each for path in list_change_files(tmp_path) for each in read_records(path)}
    image = {"before": row(0, 5)} if mode == "DATA_BEFORE" else {}
    none = {"before": None} if mode == "DATA_BEFORE" else {}
    assert found == {"k0": {"op": "d", **image}, "k9": {"op": "i", **none}}


def test_a_rewrite_that_changes_nothing_has_a_file_as_well(tmp_path: Path) -> None:
    put(start(tmp_path), records([row(0, 1)], partitioned=False))
    [path] = list_change_files(tmp_path)
    assert read_records(path) == []
    assert newest_stats(tmp_path)[0].cdc_stats == {path.name: path.stat().st_size}


@pytest.mark.parametrize("version", [9, 6])
def test_markers_announce_the_file_as_java_does(version: int, tmp_path: Path, requests_made: list[Request]) -> None:
    start(tmp_path, Kind(version, merge_on_read=False, partitioned=False))
    requests_made.clear()
    put(tmp_path, records([row(0, 6)], partitioned=False))
    markers = [each.path.split(".marker.") for each in filter(writes(r"/\.temp/.*\.marker\."), requests_made)]
    kinds = {path.endswith(".cdc"): kind for path, kind in markers}
    assert kinds == {False: "MERGE", True: "CREATE" if version == 9 else "APPEND"}


@pytest.mark.parametrize("failing", [1, 2])
@pytest.mark.parametrize("version", [9, 6])
def test_a_write_that_fails_leaves_no_file(version: int, failing: int, tmp_path: Path) -> None:
    start(tmp_path, Kind(version, merge_on_read=False, partitioned=False))
    before, rows = data_files(tmp_path), contents(tmp_path)
    is_data, calls = writes(r"\.(parquet|cdc)$"), 0

    def answer(request: Request) -> Any:
        nonlocal calls
        calls += is_data(request)
        if is_data(request) and calls == failing:
            raise StorageError("no space left on device")
        return request.make()

    with watching_requests(answer), pytest.raises(StorageError, match="no space"):
        put(tmp_path, records([row(0, 6)], partitioned=False))
    assert (data_files(tmp_path), contents(tmp_path)) == (before, rows)
    assert leftovers(tmp_path) == []


def test_files_of_lost_attempts_are_removed(tmp_path: Path) -> None:
    start(tmp_path)
    before, stray = set(data_files(tmp_path)), list[Path]()

    def lose_attempts() -> None:
        for path in set(data_files(tmp_path)) - before:
            other = tmp_path / re.sub(r"_(\d+)-\d+-", r"_\1-5-", str(path))
            other.write_bytes(b"of an attempt that lost")
            stray.append(other)

    slowly(tmp_path, records([row(0, 6)], partitioned=False), lose_attempts)
    assert len(stray) == 2
    assert not [path for path in stray if path.exists()]
    assert len(list_change_files(tmp_path)) == 1


def test_a_change_file_that_is_gone_is_a_conflict(tmp_path: Path) -> None:
    start(tmp_path)
    before = contents(tmp_path)

    def remove() -> None:
        for path in list_change_files(tmp_path):
            path.unlink()

    with pytest.raises(ConflictError, match="removed or changed"):
        slowly(tmp_path, records([row(0, 6)], partitioned=False), remove)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_rollback_removes_the_files_of_a_killed_write(version: int, tmp_path: Path) -> None:
    start(tmp_path, Kind(version, merge_on_read=False, partitioned=False))
    before = data_files(tmp_path)
    completed = writes(rf"^{tmp_path}/\.hoodie/(timeline/)?[\d_]+\.commit$")
    with dying_at(completed), pytest.raises(SystemExit):
        put(tmp_path, records([row(0, 6)], partitioned=False))
    assert len(data_files(tmp_path)) == len(before) + 2
    [pending] = HoodieTable.open(tmp_path).timeline.select_pending()
    result = HoodieTable.open(tmp_path).rollback(pending.request_time, options=QUICK)
    assert result.files_deleted == 2
    assert data_files(tmp_path) == before
