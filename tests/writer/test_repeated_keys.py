"""Keys that a table has more than once, as inserts that do not look for keys leave them: updates and deletes reach the
copy in every file group, as in Java Hudi 1.2.0 (asked for versions 6, 8 and 9, both table types, all four indexes).

Copies in one base file, of one insert or of several that fill it, are all met only by logs that name rows: where Java
writes or reads by key it meets the first (``test_small_files`` asks it).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind

INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM")
KINDS = [Kind(version, mor) for version in (9, 8, 6) for mor in (True, False)]
OTHERS = [("b", "p", 1, "b1"), ("c", "p", 1, "c1")]


def _row(id_: str, part: str, ts: int, name: str) -> dict[str, object]:
    return {"id": id_, "part": part, "ts": ts, "name": name}


def _rows(table: HoodieTable) -> list[tuple[object, ...]]:
    found = table.scan(columns=["id", "part", "ts", "name"]).to_arrow().to_pylist()
    return sorted(tuple(each.values()) for each in found)


def _made(base: Path, kind: Kind, layout: str, index: str) -> tuple[HoodieTable, dict[str, str]]:
    """A table with two rows of the key a: in one file of one insert or two, in two groups, or in two with logs."""
    options = {**QUICK, "hoodie.index.type": index, "hoodie.parquet.small.file.limit": "0"}
    table = HoodieTable.open(kind.create(base))
    others = [_row(*each) for each in OTHERS]
    if layout == "one file":
        table.insert([_row("a", "p", 1, "a1"), _row("a", "p", 2, "a2"), *others], options)
    elif layout == "filled":
        table.insert([_row("a", "p", 1, "a1"), *others], options)
        table.insert([_row("a", "p", 2, "a2")], {**QUICK, "hoodie.index.type": index})
        assert len(table.file_slices()) == 1
    else:
        table.insert([_row("a", "p", 1, "a1"), *others], options)
        table.insert([_row("a", "p", 2, "a2")], options)
    if layout == "logs":
        table.upsert([_row("a", "p", 3, "a3")], options)
        assert _rows(table)[:2] == [("a", "p", 3, "a3")] * 2
    return table, options


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("layout", ["two groups", "logs"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_updates_and_deletes_reach_the_copies_of_all_groups(
    tmp_path: Path, kind: Kind, layout: str, index: str
) -> None:
    table, options = _made(tmp_path / "t", kind, layout, index)
    table.upsert([_row("a", "p", 9, "a9")], options)
    assert _rows(table) == [("a", "p", 9, "a9")] * 2 + OTHERS
    table.upsert([_row("a", "p", 5, "a5")], options)
    assert _rows(table) == [("a", "p", 9, "a9")] * 2 + OTHERS
    table.delete([_row("a", "p", 9, "x")], options)
    assert _rows(table) == OTHERS
    table.upsert([_row("a", "p", 10, "a10")], options)
    assert ("a", "p", 10, "a10") in _rows(table)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("layout", ["one file", "filled"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_copies_in_one_file_are_told_apart_by_their_rows(tmp_path: Path, kind: Kind, layout: str, index: str) -> None:
    table, options = _made(tmp_path / "updated", kind, layout, index)
    every_row = kind.merge_on_read and kind.version >= 8 and not index.startswith("GLOBAL")
    left = [] if every_row else [("a", "p", 2, "a2")]
    table.upsert([_row("a", "p", 9, "a9")], options)
    assert _rows(table) == [*left, *[("a", "p", 9, "a9")] * (2 - len(left)), *OTHERS]
    gone, _ = _made(tmp_path / "deleted", kind, layout, index)
    gone.delete([_row("a", "p", 9, "x")], options)
    assert _rows(gone) == left + OTHERS
    if kind.merge_on_read:
        table.upsert([_row("a", "p", 5, "a5")], options)
        assert _rows(table) == [*left, *[("a", "p", 9, "a9")] * (2 - len(left)), *OTHERS]
        gone.compact(options=options)
        assert _rows(gone) == left + OTHERS


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bare_keys_delete_every_copy(tmp_path: Path, kind: Kind, index: str) -> None:
    table, options = _made(tmp_path / "t", kind, "two groups", index)
    table.insert([_row("a", "q", 1, "elsewhere")], options)
    table.delete(["a"], options)
    assert _rows(table) == OTHERS


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_copy_moves_with_a_global_index(tmp_path: Path, kind: Kind) -> None:
    table, options = _made(tmp_path / "t", kind, "two groups", "GLOBAL_SIMPLE")
    table.insert([_row("a", "q", 3, "a3")], options)
    table.upsert([_row("a", "z", 10, "a10")], options)
    assert _rows(table) == [("a", "z", 10, "a10")] * 3 + OTHERS


def test_policies_about_duplicates_count_a_key_once_more_or_less(tmp_path: Path) -> None:
    table, options = _made(tmp_path / "t", Kind(9, merge_on_read=True), "two groups", "SIMPLE")
    rows = [_row("a", "p", 9, "a9"), _row("n", "p", 1, "n1")]
    table.insert(rows, {**options, "hoodie.datasource.insert.dup.policy": "drop"})
    assert [each for each in _rows(table) if each[0] == "n"] == [("n", "p", 1, "n1")]
    assert [each[2] for each in _rows(table) if each[0] == "a"] == [1, 2]
