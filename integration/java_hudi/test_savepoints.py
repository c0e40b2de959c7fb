"""Savepoints and restores: each engine keeps, restores to and goes on from the other one's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from integration.java_hudi.session import JavaHudiError
from integration.java_hudi.tables import Kind, Lake, by_key, make_row
from tests.writer.faulty_files import FaultyFiles, Killed, Plan

KINDS = [
    Kind(9, True, True),
    Kind(9, False, True, False),
    Kind(8, True, True),
    Kind(8, True, False, False),
    Kind(6, True, True),
    Kind(6, True, False),
    Kind(6, False, True, False),
]
_FIRST_THAT_RESTORES_ALL = 8
every_kind = pytest.mark.parametrize("lake", KINDS, ids=str, indirect=True)


def save_by_java(lake: Lake) -> str:
    instant = str(lake.open().timeline.select_writes().last.request_time)  # type: ignore[union-attr]
    with lake.java.configured(lake.kind.service_options):
        lake.java.call(lake.path, "create_savepoint", commit_time=instant)
    return instant


def restore_by_java(lake: Lake, saved: str) -> None:
    with lake.java.configured(lake.kind.service_options):
        lake.java.call(lake.path, "rollback_to_savepoint", instant_time=saved)


def save_here(lake: Lake) -> str:
    return lake.open().savepoint(user="me").instant


def restore_here(lake: Lake, saved: str) -> None:
    lake.open().restore(saved)
    report = lake.open().verify()
    assert report.is_right, str(report)


def change_much(lake: Lake, *, java_restores: bool) -> None:
    """Writes and services of both engines.

    Java fails to restore a table of version 6 to a savepoint before a compaction of its metadata table ("no base file
    in MDT lesser than the commit to restore to"), also one that Java alone has written, so there it gets few changes.
    """
    if java_restores and lake.kind.metadata and lake.kind.version < _FIRST_THAT_RESTORES_ALL:
        lake.change(5)
        return
    lake.change(5)
    if lake.kind.merge_on_read:
        lake.run_java()
        lake.change(6)
        lake.open().compact()
    rows = [make_row(number, 7) for number in (0, 40, 41)]
    lake.open().upsert(rows)
    lake.note(rows, "upsert")
    lake.open().clean(1)
    lake.write([make_row(50, 8, part="new")], "insert")
    if lake.kind.merge_on_read:
        lake.open().schedule_compaction()
        lake.change(9)


Step = Callable[[Lake], str]
WAYS: Mapping[str, tuple[Step, Callable[[Lake, str], None]]] = {
    "java-ours": (save_by_java, restore_here),
    "ours-java": (save_here, restore_by_java),
    "ours-ours": (save_here, restore_here),
}


@pytest.mark.parametrize("way", WAYS)
@every_kind
def test_a_restore_to_the_others_savepoint(lake: Lake, way: str) -> None:
    save, restore = WAYS[way]
    saved, rows = save(lake), dict(lake.rows)
    assert [each.instant for each in lake.open().savepoints()] == [saved]
    assert [each["savepoint_time"] for each in lake.java.call(lake.path, "show_savepoints")] == [saved]
    change_much(lake, java_restores=restore is restore_by_java)
    lake.check()
    assert by_key(lake.open().scan(as_of=saved).to_arrow()).keys() == rows.keys()
    restore(lake, saved)
    lake.rows = rows
    lake.check()
    lake.check_metadata()
    lake.change(10)
    lake.check()
    if lake.kind.merge_on_read:
        lake.run_java()
    lake.open().delete_savepoint(saved)
    lake.open().clean(1)
    more = [make_row(number, 11) for number in (1, 60)]
    lake.open().upsert(more)
    lake.note(more, "upsert")
    lake.change(12)
    lake.check()
    lake.check_metadata()


@pytest.mark.parametrize("lake", [Kind(9, True, True), Kind(6, True, True, False)], ids=str, indirect=True)
def test_java_finishes_a_restore_of_ours_that_was_cut_short(lake: Lake, tmp_path: Path) -> None:
    saved, rows = save_here(lake), dict(lake.rows)
    change_much(lake, java_restores=True)
    for at in (1, 6, 12):
        cut = lake.copied(tmp_path / f"at{at}")
        plan = Plan(at=at, watched=("delete",))
        with pytest.raises(Killed):
            HoodieTable(open_snapshot(FaultyFiles(TableFiles.open(cut.path), plan))).restore(saved)
        with pytest.raises(JavaHudiError, match=r"[Rr]estore"):
            cut.write([make_row(1, 20)])
        restore_by_java(cut, saved)
        cut.rows = dict(rows)
        cut.check()
        cut.change(21)
        cut.check()
