"""A merge leaves record key fields and partition fields as they are, and asks for columns that the table has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, MergeError, RecordMerger
from tests.reader.slices import SCHEMA, Version, config_of, reader_of, rows_of, write_slice
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, contents, row

BASE = [Version("a", v=1, s="p"), Version("b", v=2, s="p")]
LOG = [Version("b", v=3, s="p"), Version("b", v=4, s="q")]
Change = Callable[[Any, Any, Any], Any]


class Rows(RecordMerger):
    """Applies a function to records."""

    strategy_id = "c3000000-0000-4000-8000-000000000000"

    def __init__(self, change: Change) -> None:
        self.change = change

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return self.change(older, newer, context)

    def partial_merge(self, older: Any, newer: Any, reader_schema: Any, context: Any, props: Any) -> Any:
        return self.change(older, newer, context)


class Batches(Rows):
    """Applies a function to batches."""

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer

    def merge_batch(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return self.change(older, newer, context)


def read(folder: Path, merger: RecordMerger, log: list[Version] = LOG, **config: Any) -> list[dict[str, Any]]:
    given = config_of(**{"partition_fields": ("s",), **config})
    return rows_of(reader_of(folder, write_slice(folder, BASE, log), given, merger=merger))


def keyed(context: Any, newer: Any, **values: Any) -> Any:
    known = {name: context.get_value(newer, name) for name in SCHEMA.names}
    return context.construct(newer.record_key, known | values)


@pytest.mark.parametrize(
    ("merger", "column", "was", "now"),
    [
        (Rows(lambda a, b, c: c.replace(b, id="z")), "id", "b", "z"),
        (Rows(lambda a, b, c: c.replace(b, id=None)), "id", "b", None),
        (Rows(lambda a, b, c: c.delete(c.replace(b, id="z"))), "id", "b", "z"),
        (Rows(lambda a, b, c: keyed(c, b, id="z")), "id", "b", "z"),
        (Rows(lambda a, b, c: c.construct("b", {"v": 1}, pa.schema([("v", pa.int64())]))), "id", "b", None),
        (Rows(lambda a, b, c: c.replace(b, s="third")), "s", "q", "third"),
        (Batches(lambda a, b, c: b.with_columns(id=["z"] * len(b))), "id", "b", "z"),
        (Batches(lambda a, b, c: b.with_columns(s=["third"] * len(b))), "s", "q", "third"),
    ],
)
def test_a_change_of_key_or_partition_is_an_error_that_says_where(
    tmp_path: Path, merger: RecordMerger, column: str, was: Any, now: Any
) -> None:
    with pytest.raises(MergeError, match=f"changed {column}, .*, from {was!r} to {now!r}") as caught:
        read(tmp_path, merger)
    where = caught.value.where
    assert (where["key"], where["column"], where["merger"]) == ("b", column, type(merger).__name__)
    assert where["file_group"].startswith("1111")
    assert where["instants"].startswith("2026010200000")


@pytest.mark.parametrize(
    "merger",
    [
        Rows(lambda a, b, c: c.replace(b, id="b", v=9)),
        Rows(lambda a, b, c: c.replace(b, s=c.get_value(a, "s"), v=9)),
        Rows(lambda a, b, c: keyed(c, b, v=9)),
        Batches(lambda a, b, c: b.with_columns(s=a.column("s"), v=[9] * len(b))),
    ],
)
def test_what_either_version_says_may_stay(tmp_path: Path, merger: RecordMerger) -> None:
    assert {each["id"]: each["v"] for each in read(tmp_path, merger)} == {"a": 1, "b": 9}


def test_a_partial_row_may_take_what_it_lacks_and_nothing_else(tmp_path: Path) -> None:
    lacking = [dataclasses.replace(LOG[0], absent=("id", "s"))]
    found = read(tmp_path, Rows(lambda a, b, c: c.replace(b, id="b", s="p", ts=5)), lacking)
    assert {each["id"] for each in found} == {"a", "b"}
    with pytest.raises(MergeError, match=r"changed id, .* from 'b' to 'z'"):
        read(tmp_path, Rows(lambda a, b, c: c.replace(b, id="z")), lacking)


def test_fields_in_structs(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("at", pa.struct([("city", pa.string())]))])
    table = HoodieTable.create(tmp_path, schema, record_key="id", ordering="ts", partition_by=["at.city"])
    rows = [{"id": "a", "ts": ts, "at": {"city": "sf"}} for ts in (1, 2)]
    table.upsert(pa.Table.from_pylist(rows[:1], schema), QUICK)
    moved = Rows(lambda a, b, c: c.replace(b, at={"city": "la"}))
    with pytest.raises(MergeError, match=r"changed at.city, .* from 'sf' to 'la'"):
        table.upsert(pa.Table.from_pylist(rows, schema), QUICK, moved)


@pytest.mark.parametrize("merge_on_read", [True, False])
def test_a_write_that_would_change_a_key_leaves_the_table_as_it_was(tmp_path: Path, merge_on_read: bool) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read).create(tmp_path))
    table.upsert([row(1, 1, "old")], QUICK)
    rows = [row(1, 2, "x"), row(1, 3, "y")] if merge_on_read else [row(1, 2, "x")]
    for values in ({"id": "z"}, {"part": "z"}):
        with pytest.raises(MergeError, match=r"record key or partition field.*key=k1"):
            table.upsert(rows, QUICK, Rows(lambda a, b, c, v=values: c.replace(b, **v)))  # type: ignore[misc]
    assert contents(tmp_path) == {"k1": (1, "old")}


# Columns that are not there -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "merger",
    [
        Rows(lambda a, b, c: b if c.get_value(b, "prize") is None else a),
        Rows(lambda a, b, c: b if c.get_value(None, "prize") is None else a),
        Batches(lambda a, b, c: b if b.column("prize").null_count else a),
        Batches(lambda a, b, c: b.with_columns(prize=[1] * len(b))),
    ],
)
def test_a_mistyped_column_is_an_error_with_key_and_file_group(tmp_path: Path, merger: RecordMerger) -> None:
    with pytest.raises(MergeError, match="the table does not have") as caught:
        read(tmp_path, merger)
    where: Mapping[str, Any] = caught.value.where
    assert where["column"] == "prize"
    assert where["file_group"].startswith("1111")
    assert isinstance(merger, Batches) or (where["key"], where["instants"][:8]) == ("b", "20260102")


def test_a_merger_may_ask_whether_a_table_has_a_column(tmp_path: Path) -> None:
    rows = Rows(lambda a, b, c: b if not c.has_value(b, "prize") else a)
    batches = Batches(lambda a, b, c: b if not b.has_values("prize").any() else a)
    assert read(tmp_path, rows) == read(tmp_path, batches)


def test_a_column_that_was_added_later_is_null_in_older_rows(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True, partitioned=False).create(tmp_path))
    table.upsert([row(1, 1, "old")], QUICK)
    table.upsert([{**row(1, 2, "new"), "added": 7}], QUICK)
    seen: list[Any] = []
    merger = Rows(lambda a, b, c: seen.append((c.get_value(a, "added"), c.get_value(b, "added"))) or b)
    assert table.scan(["added"], merger=merger).to_arrow()["added"].to_pylist() == [7]
    assert seen == [(None, 7)]


def test_a_row_that_is_made_from_nothing_keeps_the_meta_columns_of_the_newer_version(tmp_path: Path) -> None:
    class Builds(Rows):
        def __init__(self) -> None:
            super().__init__(lambda older, newer, context: context.construct(newer.record_key, row(1, 9)))

    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "table", merger=Builds()))
    table.upsert([row(1)], QUICK, merger=Builds())
    done = table.upsert([row(1)], QUICK, merger=Builds())
    for _ in range(2):
        (found,) = table.scan(merger=Builds()).to_arrow().to_pylist()
        assert found["_hoodie_commit_time"] == done.instant
        assert found["_hoodie_commit_seqno"]
        assert (found["_hoodie_partition_path"], found["ts"]) == (found["part"], 9)
        table.compact(merger=Builds(), options=QUICK)
