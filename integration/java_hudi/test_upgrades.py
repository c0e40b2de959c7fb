"""Upgrades and downgrades: each engine goes on with a table whose version the other one has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from integration.java_hudi.tables import Kind, Lake, by_key, make_row, same_rows
from tests.writer.faulty_files import FaultyFiles, Killed, Plan

VERSIONS = {6: "SIX", 8: "EIGHT", 9: "NINE"}
KINDS = [
    Kind(version, partitioned, metadata, merge_on_read)
    for version in VERSIONS
    for partitioned, metadata, merge_on_read in ((True, True, True), (False, True, False), (True, False, True))
]
CHANGES = [pytest.param(kind, to, id=f"{kind}-to-{to}") for kind in KINDS for to in VERSIONS if to != kind.version]


def change_here(lake: Lake, to: int) -> None:
    table = lake.open()
    (table.upgrade if to > table.config.version else table.downgrade)(to)
    assert lake.open().config.version == to


def change_by_java(lake: Lake, to: int) -> None:
    up = to > lake.kind.version
    with lake.java.configured({"hoodie.metadata.enable": str(lake.kind.metadata).lower()}):
        done = lake.java.call(lake.path, "upgrade_table" if up else "downgrade_table", to_version=VERSIONS[to])
    assert done == [{"result": True}]
    assert lake.open().config.version == to


Change = Callable[[Lake, int], None]
WAYS: dict[str, Change] = {"ours": change_here, "javas": change_by_java}


def go_on(lake: Lake, ts: int) -> None:
    """Writes, compactions and reads of both engines."""
    lake.change(ts)
    lake.check()
    rows = [make_row(number, ts + 1) for number in (0, 3, 60 + ts)]
    lake.open().upsert(rows)
    lake.note(rows, "upsert")
    lake.check()
    if lake.kind.merge_on_read:
        lake.run_java()
    lake.change(ts + 2)
    lake.check()
    lake.check_metadata()
    report = lake.open().verify()
    assert report.is_right, str(report)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("lake", "to"), CHANGES, indirect=["lake"])
def test_both_go_on_after_a_change_of_version(lake: Lake, to: int, way: str) -> None:
    before = lake.check()
    commits = [each.request_time for each in lake.open().timeline.select_writes()]
    past = {each: by_key(lake.open().scan(as_of=each).to_arrow()) for each in commits}
    WAYS[way](lake, to)
    lake.kind = replace(lake.kind, version=to)
    same_rows(before, lake.check())
    lake.check_metadata()
    report = lake.open().verify()
    assert report.is_right, str(report)
    if way == "ours":
        for each, rows in past.items():
            same_rows(rows, by_key(lake.open().scan(as_of=each).to_arrow()))
            same_rows(rows, by_key(lake.java.read(lake.path, as__of__instant=each)))
    check_increments(lake)
    go_on(lake, 10)
    check_increments(lake)


def check_increments(lake: Lake) -> None:
    """Compare what each commit wrote, as both engines tell it."""
    options = {"hoodie__datasource__query__type": "incremental", "hoodie__datasource__read__begin__instanttime": "000"}
    java = by_key(lake.java.read(lake.path, **options))
    ours = by_key(lake.open().incremental("earliest").to_arrow())
    same_rows(java, ours)


@pytest.mark.parametrize("lake", [Kind(6, True, True), Kind(9, True, True)], ids=str, indirect=True)
def test_there_and_back(lake: Lake) -> None:
    """Every version in turn, by each engine in turn."""
    versions = (8, 9, 8, 6, 9) if lake.kind.version == 6 else (8, 6, 8, 9, 6)
    for number, to in enumerate(versions):
        (change_here if number % 2 == 0 else change_by_java)(lake, to)
        lake.kind = replace(lake.kind, version=to)
        lake.check()
        go_on(lake, 10 + 5 * number)


@pytest.mark.parametrize(("lake", "to"), [(Kind(6, True, True), 9), (Kind(9, True, True), 6)], indirect=["lake"])
def test_java_goes_on_after_a_change_that_was_cut_short(lake: Lake, to: int, tmp_path: Path) -> None:
    """Whatever the version is then: Java reads and writes, and our next run finishes."""
    for at in (3, 11, 23):
        cut = lake.copied(tmp_path / f"at{at}")
        table = HoodieTable(
            open_snapshot(FaultyFiles(TableFiles.open(cut.path), Plan(at=at, watched=("put", "delete"))))
        )
        with pytest.raises(Killed):
            (table.upgrade if to > table.config.version else table.downgrade)(to)
        cut.kind = replace(cut.kind, version=cut.open().config.version)
        cut.check()
        cut.change(5)
        cut.check()
        if cut.open().config.version != to:
            change_here(cut, to)
            cut.kind = replace(cut.kind, version=to)
        cut.check()
        go_on(cut, 10)
