"""The operations of pairs: what each does to a table, and what the rows are then, by a model of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from integration.crash.operations import FEW_BLOCKS, KEEP_ONE
from integration.pairs.tables import FAILED, SAVED, SCHEMA, Kind, Prepared, Rows, Values, rows_of

FIRST, SECOND = "a", "b"
"""The sides of a pair: their rows differ, save keys that both write."""

ADDED = (pa.field("extra", pa.int32()),)
"""The column that an alteration adds."""

_TS = 10
_LOOKED_FOR = ("id = 'k1'", "name = 'n2-2'", "ts >= 4")


@dataclass(frozen=True, slots=True)
class Turn:
    """One operation's turn: on which table, whose it is, and the writer's options."""

    prepared: Prepared
    side: str
    options: Mapping[str, str]

    @property
    def kind(self) -> Kind:
        return self.prepared.kind

    def row(self, key: str, part: str, what: str) -> dict[str, Any]:
        return {"id": key, "part": part, "ts": _TS, "name": f"{what}-{self.side}", "qty": 7}


Model = Callable[[Rows, Turn], Rows]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        name: in reports.
        act: does it, and returns what it found where it only reads.
        after: the rows that there are after it, from those before.
        possible: whether it can be done to a kind of table.
        trait: what the table must have.
        reads: it changes nothing: its answer is what counts.
        undoes: files that readers of the past need may go.
        between: readers beside it see a state between, as the documentation says.
    """

    name: str
    act: Callable[[HoodieTable, Turn], Any]
    after: Model = lambda rows, _: rows
    possible: Callable[[Kind], bool] = lambda _: True
    trait: str = ""
    reads: bool = False
    undoes: bool = False
    between: bool = False


# Writes of rows ---------------------------------------------------------------------------------------------------


def _changes(turn: Turn, what: str) -> list[dict[str, Any]]:
    """Return rows of keys in both partitions, a new one of both sides, and one of this side."""
    new = [("new", "p0"), (f"new-{turn.side}", "p1")]
    return [turn.row(key, part, what) for key, part in (("k0", "p0"), ("k3", "p1"), ("k6", "p0"), *new)]


def _own(turn: Turn, what: str) -> list[dict[str, Any]]:
    return [turn.row(f"{what}-{turn.side}-{part}", part, what) for part in ("p0", "p1")]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def _told(rows: list[dict[str, Any]]) -> dict[tuple[str, str], Values]:
    return rows_of(_table(rows))


def _upserted(rows: Rows, news: Rows) -> Rows:
    """Merge by ordering value; of equal ones the later write counts."""
    return {**rows, **{place: news[place] for place in news if place not in rows or news[place][0] >= rows[place][0]}}


def upsert(table: HoodieTable, turn: Turn) -> Any:
    return table.upsert(_table(_changes(turn, "upsert")), turn.options)


def insert(table: HoodieTable, turn: Turn) -> Any:
    return table.insert(_table(_own(turn, "insert")), turn.options)


def bulk_insert(table: HoodieTable, turn: Turn) -> Any:
    return table.bulk_insert(_table(_own(turn, "bulk")), turn.options)


def delete(table: HoodieTable, turn: Turn) -> Any:
    return table.delete(["k0", "k2", "k5", "new"], turn.options)


def delete_where(table: HoodieTable, turn: Turn) -> Any:
    return table.delete("qty >= 3 and qty < 7", turn.options)


def _deleted(rows: Rows, ids: tuple[str, ...]) -> Rows:
    return {place: row for place, row in rows.items() if place[1] not in ids}


def update(table: HoodieTable, turn: Turn) -> Any:
    return table.update({"name": f"concat(name, '+{turn.side}')"}, "id in ('k0', 'k1', 'k4')", turn.options)


def _updated(rows: Rows, turn: Turn) -> Rows:
    ids = ("k0", "k1", "k4")
    return {
        place: (ts, f"{name}+{turn.side}", qty) if place[1] in ids else (ts, name, qty)
        for place, (ts, name, qty) in rows.items()
    }


def merge(table: HoodieTable, turn: Turn) -> Any:
    return table.merge(
        _table(_changes(turn, "merge")),
        ["id", "part"],
        when_matched="update",
        when_not_matched="insert",
        options=turn.options,
    )


def insert_overwrite(table: HoodieTable, turn: Turn) -> Any:
    return table.insert_overwrite(_table(_in_p0(turn)), turn.options)


def _in_p0(turn: Turn) -> list[dict[str, Any]]:
    return [turn.row(key, "p0", "overwrite") for key in ("k0", f"over-{turn.side}")]


def overwrite_table(table: HoodieTable, turn: Turn) -> Any:
    return table.insert_overwrite_table(_table(_changes(turn, "whole")), turn.options)


def delete_partition(table: HoodieTable, turn: Turn) -> Any:
    return table.delete_partition("p1", turn.options)


# Services, states, versions, columns, indexes ---------------------------------------------------------------------


def compact(table: HoodieTable, turn: Turn) -> Any:
    return table.compact(LocalEngine(1), options=turn.options)


def log_compact(table: HoodieTable, turn: Turn) -> Any:
    return table.log_compact(LocalEngine(1), {**FEW_BLOCKS, **turn.options})


def cluster(table: HoodieTable, turn: Turn) -> Any:
    small = {"hoodie.clustering.plan.strategy.sort.columns": "id"}
    return table.cluster(LocalEngine(1), options={**turn.options, **small})


def clean(table: HoodieTable, turn: Turn) -> Any:
    return table.clean(1, turn.options)


def archive(table: HoodieTable, turn: Turn) -> Any:
    return table.archive({**KEEP_ONE, **turn.options})


def savepoint(table: HoodieTable, turn: Turn) -> Any:
    return table.savepoint(comment=turn.side, options=turn.options)


def delete_savepoint(table: HoodieTable, turn: Turn) -> Any:
    return table.delete_savepoint(turn.prepared.saved, turn.options)


def restore(table: HoodieTable, turn: Turn) -> Any:
    return table.restore(turn.prepared.saved, turn.options)


def _restored(_: Rows, turn: Turn) -> Rows:
    assert turn.prepared.saved_rows is not None
    return turn.prepared.saved_rows


def rollback(table: HoodieTable, turn: Turn) -> Any:
    return table.rollback(turn.prepared.failed, turn.options)


def alter(table: HoodieTable, turn: Turn) -> Any:
    return table.alter(add=ADDED, options=turn.options)


def upgrade(table: HoodieTable, turn: Turn) -> Any:
    return table.upgrade(9, options=turn.options)


def downgrade(table: HoodieTable, turn: Turn) -> Any:
    return table.downgrade(8 if turn.kind.version == 9 and turn.kind.indexed else 6, options=turn.options)


def build_index(table: HoodieTable, turn: Turn) -> Any:
    """Build an index that the table lacks: one of keys, or where these are there, of another column."""
    if not turn.kind.indexed:
        return table.index.build("record_index", options=turn.options)
    if turn.kind.version == 6:
        return table.index.build("bloom_filters", options=turn.options)
    return table.index.build("by_qty", "qty", options=turn.options)


def build_other_index(table: HoodieTable, turn: Turn) -> Any:
    """Build one of files."""
    name = "bloom_filters" if turn.kind.indexed else "column_stats"
    return table.index.build(name, options=turn.options)


def drop_index(table: HoodieTable, turn: Turn) -> Any:
    return table.index.drop("record_index" if turn.kind.version == 6 else "by_name", options=turn.options)


def drop_other_index(table: HoodieTable, turn: Turn) -> Any:
    return table.index.drop("column_stats", options=turn.options)


def drop_all_indexes(table: HoodieTable, turn: Turn) -> Any:
    return table.index.drop("files", options=turn.options)


# What only looks --------------------------------------------------------------------------------------------------


def verify(table: HoodieTable, _: Turn) -> Any:
    report = table.verify()
    return [] if report.is_right else [str(each) for each in report.findings]


def read(table: HoodieTable, _: Turn) -> Any:
    """Read all rows, then some by filters that ask indexes."""
    rows = rows_of(table.scan().to_arrow())
    for text in _LOOKED_FOR:
        found = rows_of(table.scan(filter=text).to_arrow())
        expected = {place: row for place, row in rows.items() if _matches(place, row, text)}
        if found != expected:
            return {("filter", text): (0, f"{found}, not {expected}", 0)}
    return rows


def _matches(place: tuple[str, str], row: Values, text: str) -> bool:
    if text.startswith("id"):
        return place[1] == "k1"
    return row[1] == "n2-2" if text.startswith("name") else row[0] >= 4


def follow(table: HoodieTable, _: Turn) -> Any:
    """Take all rows of the table, then what lands, and return the last state of each key."""
    rows: dict[tuple[str, str], Values] = {}
    for batch in table.follow(start="earliest", poll=None):
        rows |= rows_of(pa.table(batch.rows))
    return rows


OPERATIONS = {
    each.name: each
    for each in (
        Operation("upsert", upsert, lambda rows, turn: _upserted(rows, _told(_changes(turn, "upsert")))),
        Operation("insert", insert, lambda rows, turn: {**rows, **_told(_own(turn, "insert"))}),
        Operation("bulk insert", bulk_insert, lambda rows, turn: {**rows, **_told(_own(turn, "bulk"))}),
        Operation("delete", delete, lambda rows, _: _deleted(rows, ("k0", "k2", "k5", "new"))),
        Operation(
            "delete by filter",
            delete_where,
            lambda rows, _: {place: row for place, row in rows.items() if not 3 <= row[2] < 7},
        ),
        Operation("update", update, _updated),
        Operation("merge", merge, lambda rows, turn: _upserted(rows, _told(_changes(turn, "merge")))),
        Operation(
            "insert overwrite",
            insert_overwrite,
            lambda rows, turn: {
                **{place: row for place, row in rows.items() if place[0] != "p0"},
                **_told(_in_p0(turn)),
            },
        ),
        Operation("overwrite table", overwrite_table, lambda _, turn: _told(_changes(turn, "whole"))),
        Operation(
            "delete partition",
            delete_partition,
            lambda rows, _: {place: row for place, row in rows.items() if place[0] != "p1"},
        ),
        Operation("compaction", compact, possible=lambda kind: kind.merge_on_read),
        Operation("log compaction", log_compact, possible=lambda kind: kind.merge_on_read),
        Operation("clustering", cluster),
        Operation("clean", clean, undoes=True),
        Operation("archive", archive),
        Operation("savepoint", savepoint),
        Operation("delete savepoint", delete_savepoint, trait=SAVED),
        Operation("restore", restore, _restored, trait=SAVED, undoes=True, between=True),
        Operation("rollback", rollback, trait=FAILED),
        Operation("alter", alter),
        Operation("upgrade", upgrade, possible=lambda kind: kind.version < 9, undoes=True),
        Operation("downgrade", downgrade, possible=lambda kind: kind.version > 6, undoes=True),
        Operation("index build", build_index),
        Operation(
            "other index build", build_other_index, possible=lambda kind: not (kind.indexed and kind.version == 6)
        ),
        Operation("index drop", drop_index, possible=lambda kind: kind.indexed),
        Operation("other index drop", drop_other_index, possible=lambda kind: kind.indexed),
        Operation("metadata table drop", drop_all_indexes, possible=lambda kind: kind.indexed),
        Operation("verify", verify, reads=True),
        Operation("read", read, reads=True),
        Operation("follow", follow, reads=True),
    )
}


def traits_of(first: Operation, second: Operation) -> str | None:
    """Return what the table of a pair must have; None where one needs what the other's table has not."""
    wanted = {each.trait for each in (first, second)} - {""}
    return None if len(wanted) > 1 else next(iter(wanted), "")
