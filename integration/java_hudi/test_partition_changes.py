"""Deleted and overwritten partitions: each engine reads the other one's, and goes on."""

from __future__ import annotations

import pytest

from integration.java_hudi.tables import Kind, Lake, make_row

KINDS = [
    Kind(9, True, True),
    Kind(9, True, True, False),
    Kind(8, True, False),
    Kind(6, True, True),
    Kind(6, True, False),
]
every_kind = pytest.mark.parametrize("lake", KINDS, ids=str, indirect=True)


def drop(lake: Lake, *partitions: str) -> None:
    lake.rows = {key: row for key, row in lake.rows.items() if row["part"] not in partitions}


@every_kind
def test_java_goes_on_after_ours(lake: Lake) -> None:
    lake.open().delete_partition("p1")
    drop(lake, "p1")
    lake.check()
    lake.check_metadata()
    rows = [make_row(number, 8) for number in (1, 4)]
    lake.write(rows)
    lake.check()
    new = [make_row(0, 9), make_row(90, 9)]
    lake.open().insert_overwrite(new, partitions=["p0", "p2"])
    drop(lake, "p0", "p2")
    lake.note(new, "upsert")
    lake.check()
    lake.change(10)
    lake.open().clean(1)
    lake.check()
    lake.check_metadata()


@every_kind
def test_we_go_on_after_javas(lake: Lake) -> None:
    options = {"hoodie__datasource__write__partitions__to__delete": "p1,*2"}
    before = dict(lake.rows)
    lake.write([make_row(1)], "delete_partition", **options)
    lake.rows = before
    drop(lake, "p1", "p2")
    lake.check()
    rows = [make_row(number, 8) for number in (1, 2, 3)]
    lake.open().upsert(rows)
    lake.note(rows, "upsert")
    lake.open().delete_partition("*2")
    drop(lake, "p2")
    lake.open().clean(1)
    lake.check()
    lake.check_metadata()
    report = lake.open().verify()
    assert report.is_right, str(report)
