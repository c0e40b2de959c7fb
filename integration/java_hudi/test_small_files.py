"""New rows fill small base files: Java Hudi and this package choose the same files, and go on after each other.

Both write the same rows to copies of one table. On copy-on-write tables Java takes small files in no order of its own,
so there only the number of file groups is compared.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import META, SCHEMA, Kind, Lake, Row, make_row
from integration.java_hudi.test_writes import OurLake

KINDS = [
    Kind(9, True, True),
    Kind(9, False, False),
    Kind(8, True, True),
    Kind(6, True, True),
    Kind(9, True, True, False),
    Kind(6, False, True, False),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
FILL = {"hoodie__parquet__small__file__limit": "104857600"}


def begin(java: JavaSession, base: Path, kind: Kind) -> Lake:
    """A table of Java with two file groups in each partition, a large one and a small one."""
    lake = Lake(java, base, kind)
    lake.write([make_row(number) for number in range(24)], "insert", mode="overwrite")
    lake.write([make_row(number) for number in range(24, 30)], "insert")
    return lake


def ours(lake: Lake) -> OurLake:
    """The same table in our hands."""
    return OurLake(lake.java, lake.path, lake.kind, dict(lake.rows))


def changed(lake: Lake, numbers: range, ts: int) -> list[Row]:
    """New versions of rows, where they are."""
    return [make_row(each, ts, name=f"at {ts}", part=lake.rows[f"k{each:03d}"]["part"]) for each in numbers]


def describe(lake: Lake, known: set[str]) -> Any:
    """What both must agree on: rows of the base file and number of logs of each group; ids of known groups only."""
    slices = lake.open().file_slices()
    if not lake.kind.merge_on_read:
        return Counter(each.partition_path for each in slices)
    return sorted(
        (
            each.partition_path,
            each.file_id if each.file_id in known else "new",
            pq.read_metadata(lake.path / each.base_file.path).num_rows if each.base_file else 0,
            len(each.log_files),
        )
        for each in slices
    )


@every_kind
def test_both_fill_the_same_files(java: JavaSession, tmp_path: Path, kind: Kind) -> None:
    theirs = begin(java, tmp_path / "java", kind)
    mine = ours(theirs.copied(tmp_path / "ours"))
    known = {each.file_id for each in theirs.open().file_slices()}
    assert len(known) == (6 if kind.partitioned else 2)
    steps: list[tuple[str, list[Row]]] = [
        ("insert", [make_row(number, 2) for number in range(30, 36)]),
        ("upsert", [*changed(mine, range(24, 27), 3), *(make_row(number, 3) for number in range(36, 42))]),
        ("upsert", changed(mine, range(12), 4)),  # the large ones have a log now
        ("upsert", changed(mine, range(24, 30), 5)),  # and the small ones
        ("insert", [make_row(number, 6) for number in range(42, 48)]),
        ("upsert", [*changed(mine, range(3), 7), *(make_row(number, 7) for number in range(48, 51))]),
    ]
    for operation, rows in steps:
        theirs.write(rows, operation, **FILL)
        mine.put(rows, operation)
        assert describe(mine, known) == describe(theirs, known), (operation, rows[0]["ts"])
    mine.check()
    theirs.check()
    mine.check_metadata()
    again = [make_row(number, 0, name="again") for number in range(48, 51)]  # keys come twice
    theirs.write(again, "insert", **FILL)
    mine.put(again, "insert")
    assert describe(mine, known) == describe(theirs, known)
    found = [_rows(lake.open()) for lake in (mine, theirs)]
    assert found[0] == found[1]
    assert len(found[0]) == 54
    assert sorted(_plain(java.read(mine.path)), key=str) == sorted(_plain(java.read(theirs.path)), key=str)


@every_kind
def test_each_goes_on_where_the_other_filled(java: JavaSession, tmp_path: Path, kind: Kind) -> None:
    lake = ours(begin(java, tmp_path / "table", kind))
    lake.put([make_row(number, 2) for number in range(30, 36)], "insert")
    before = lake.check()
    assert {before[f"k{number:03d}"]["_hoodie_commit_time"] for number in range(24)} < {
        each["_hoodie_commit_time"] for each in before.values()
    }
    lake.check_metadata()
    lake.write([*changed(lake, range(24, 30), 3), make_row(36, 3)], **FILL)
    lake.put([*changed(lake, range(30, 36), 4), make_row(37, 4), make_row(38, 4)])
    lake.check()
    lake.write([make_row(39, 5)], "insert", **FILL)
    lake.write([{**lake.rows["k030"], "ts": 6}], "delete", **FILL)
    lake.put([{**lake.rows["k031"], "ts": 6}], "delete")
    lake.check()
    if kind.merge_on_read:
        lake.run_java()
        lake.check()
        lake.put([make_row(40, 7), make_row(41, 7)], "insert")
        lake.write(changed(lake, range(36, 40), 8), **FILL)
        assert lake.open().compact().instant is not None
    lake.java.clean(lake.path, lake.kind.service_options)
    lake.put([make_row(42, 9), *changed(lake, range(6), 9)])
    lake.open().clean(1)
    lake.write([make_row(43, 10)], "insert", **FILL)
    lake.check()
    lake.check_metadata()
    report = lake.open().verify()
    assert report.is_right, str(report)


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
@every_kind
def test_copies_that_inserts_put_into_one_file_are_met_alike(
    java: JavaSession, tmp_path: Path, kind: Kind, index: str
) -> None:
    """On copy-on-write tables, and where logs name no rows, both change the first copy only. On copy-on-write tables a
    changed row keeps its place in Java and comes last here, so the next change may meet another copy (divergences.md).
    """
    options = {**FILL, "hoodie__index__type": index}
    theirs = Lake(java, tmp_path / "java", kind)
    first = make_row(0, 1)
    theirs.write([first, make_row(1, 1, part=first["part"])], "insert", mode="overwrite")
    for ts in (2, 3):
        theirs.write([{**first, "ts": ts}], "insert", **options)
    assert len(theirs.open().file_slices()) == 1
    mine = ours(theirs.copied(tmp_path / "ours"))
    for operation, ts in (("upsert", 9), ("delete", 10)):
        theirs.write([{**first, "ts": ts}], operation, **options)
        mine.put([{**first, "ts": ts}], operation, hoodie__index__type=index)
        found, want = _rows(mine.open()), _rows(theirs.open())
        if operation == "upsert" or kind.merge_on_read:
            assert found == want
        assert len(found) == len(want)
        assert sorted(_plain(java.read(mine.path)), key=str) == sorted(_plain(mine.open().scan().to_arrow()), key=str)


def _rows(table: Any) -> list[str]:
    return sorted(map(str, table.scan(columns=["id", "ts", "name", "part"]).to_arrow().to_pylist()))


def _plain(rows: Any) -> list[tuple[str, ...]]:
    names = [name for name in SCHEMA.names if name not in META]
    return [tuple(str(row[name]) for name in names) for row in rows.select(names).to_pylist()]
