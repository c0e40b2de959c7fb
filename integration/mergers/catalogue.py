"""Mergers that people want, each beside the rule that it stands for, written on plain versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import BufferedBatch, RecordMerger

SCHEMA = pa.schema([
    ("id", pa.string()),
    ("part", pa.string()),
    ("ts", pa.int64()),
    ("seq", pa.int64()),
    ("a", pa.int64()),
    ("a_at", pa.int64()),
    ("b", pa.string()),
    ("b_at", pa.int64()),
    ("n", pa.int64()),
    ("tags", pa.list_(pa.field("element", pa.string()))),
    ("place", pa.struct([("city", pa.string()), ("zip", pa.int64())])),
    ("source", pa.string()),
    ("_hoodie_is_deleted", pa.bool_()),
])  # fmt: skip
RANKS = {"manual": 3, "app": 2, "crawler": 1}
LATENESS = 4
LIMIT = 40

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a record: its row, and whether it deletes the record; a delete may have no row."""

    row: Row | None
    dead: bool = False


Rule = Callable[[Version, Version], Version]


def _set(version: Version, **values: Any) -> Version:
    return replace(version, row={**(version.row or {}), **values})


def _latest_delete(older: Version, newer: Version) -> Version | None:
    """The answer of most rules where a side is a delete: the newer version."""
    return newer if older.dead or newer.dead else None


class Tombstones(RecordMerger):
    """A delete with data outlives rows that are not later than it, by the data."""

    strategy_id = "a4700000-0000-4000-8000-000000000001"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete and older.record is not None:
            before, after = context.get_value(older, "ts"), context.get_value(newer, "ts")
            return newer if after is not None and after > before else older
        return newer


def tombstones(older: Version, newer: Version) -> Version:
    if older.dead and older.row is not None:
        return newer if newer.row is not None and newer.row["ts"] > older.row["ts"] else older
    return newer


class StaysDead(RecordMerger):
    """A record that was deleted never comes back."""

    strategy_id = "a4700000-0000-4000-8000-000000000002"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older if older.is_delete else newer


def stays_dead(older: Version, newer: Version) -> Version:
    return older if older.dead else newer


class LastWriterPerColumn(RecordMerger):
    """Each column has a time of its own."""

    strategy_id = "a4700000-0000-4000-8000-000000000003"
    columns: ClassVar = ("a", "b")

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        kept = {}
        for name in self.columns:
            if context.get_value(older, f"{name}_at") > context.get_value(newer, f"{name}_at"):
                kept |= {each: context.get_value(older, each) for each in (name, f"{name}_at")}
        return context.replace(newer, **kept) if kept else newer


def last_writer_per_column(older: Version, newer: Version) -> Version:
    if (said := _latest_delete(older, newer)) is not None:
        return said
    kept: Row = {}
    for name in ("a", "b"):
        if older.row[f"{name}_at"] > newer.row[f"{name}_at"]:
            kept |= {each: older.row[each] for each in (name, f"{name}_at")}
    return _set(newer, **kept)


class Counter(RecordMerger):
    """Numbers add up."""

    strategy_id = "a4700000-0000-4000-8000-000000000004"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        return context.replace(newer, n=(context.get_value(older, "n") or 0) + (context.get_value(newer, "n") or 0))


def counter(older: Version, newer: Version) -> Version:
    if (said := _latest_delete(older, newer)) is not None:
        return said
    return _set(newer, n=(older.row["n"] or 0) + (newer.row["n"] or 0))


class CounterByBatch(Counter):
    """The same, many pairs at once."""

    strategy_id = "a4700000-0000-4000-8000-000000000005"

    def merge_batch(self, older: BufferedBatch, newer: BufferedBatch, context: Any, props: Any) -> BufferedBatch:
        total = pc.add(older.column("n").fill_null(0), newer.column("n").fill_null(0))
        dead = pc.or_(older.is_delete, newer.is_delete)
        return newer.where(dead, newer.with_columns(n=total))


class SetUnion(RecordMerger):
    """Tags are a set."""

    strategy_id = "a4700000-0000-4000-8000-000000000006"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        both = {*(context.get_value(older, "tags") or ()), *(context.get_value(newer, "tags") or ())}
        return context.replace(newer, tags=sorted(both))


def set_union(older: Version, newer: Version) -> Version:
    if (said := _latest_delete(older, newer)) is not None:
        return said
    return _set(newer, tags=sorted({*(older.row["tags"] or ()), *(newer.row["tags"] or ())}))


class LastThree(RecordMerger):
    """Tags are a history, of which three stay."""

    strategy_id = "a4700000-0000-4000-8000-000000000007"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        whole = [*(context.get_value(older, "tags") or ()), *(context.get_value(newer, "tags") or ())]
        return context.replace(newer, tags=whole[-3:])


def last_three(older: Version, newer: Version) -> Version:
    if (said := _latest_delete(older, newer)) is not None:
        return said
    return _set(newer, tags=[*(older.row["tags"] or ()), *(newer.row["tags"] or ())][-3:])


_FILLED = ("a", "b", "n", "source")


class FirstNonNull(RecordMerger):
    """What was known first stays."""

    strategy_id = "a4700000-0000-4000-8000-000000000008"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        known = {name: context.get_value(older, name) for name in _FILLED}
        return context.replace(newer, **{name: value for name, value in known.items() if value is not None})


def first_non_null(older: Version, newer: Version) -> Version:
    if (said := _latest_delete(older, newer)) is not None:
        return said
    return _set(newer, **{name: older.row[name] for name in _FILLED if older.row[name] is not None})


class FirstNonNullByBatch(FirstNonNull):
    """The same, many pairs at once."""

    strategy_id = "a4700000-0000-4000-8000-000000000009"

    def merge_batch(self, older: BufferedBatch, newer: BufferedBatch, context: Any, props: Any) -> BufferedBatch:
        filled = {name: pc.coalesce(older.column(name), newer.column(name)) for name in _FILLED}
        dead = pc.or_(older.is_delete, newer.is_delete)
        return newer.where(dead, newer.with_columns(**filled))


class Watermark(RecordMerger):
    """Events may be late, but not too late."""

    strategy_id = "a4700000-0000-4000-8000-00000000000a"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.record is None or older.record is None:
            return newer
        late = context.get_value(newer, "ts") < context.get_value(older, "ts") - LATENESS
        return older if late else newer


def watermark(older: Version, newer: Version) -> Version:
    if newer.row is None or older.row is None:
        return newer
    return older if newer.row["ts"] < older.row["ts"] - LATENESS else newer


class NestedMerge(RecordMerger):
    """Fields of a struct merge one by one."""

    strategy_id = "a4700000-0000-4000-8000-00000000000b"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        place = {}
        for name in ("city", "zip"):
            after = context.get_value(newer, f"place.{name}")
            place[name] = context.get_value(older, f"place.{name}") if after is None else after
        return context.replace(newer, place=place)


def nested_merge(older: Version, newer: Version) -> Version:
    if (said := _latest_delete(older, newer)) is not None:
        return said
    before, after = older.row["place"] or {}, newer.row["place"] or {}
    place = {name: before.get(name) if after.get(name) is None else after[name] for name in ("city", "zip")}
    return _set(newer, place=place)


class SourcePriority(RecordMerger):
    """What people typed in counts more than what a program found; deletes without a source count most."""

    strategy_id = "a4700000-0000-4000-8000-00000000000c"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.record is None or older.record is None:
            return newer
        before, after = (RANKS.get(context.get_value(each, "source"), 0) for each in (older, newer))
        return newer if after >= before else older


def source_priority(older: Version, newer: Version) -> Version:
    if newer.row is None or older.row is None:
        return newer
    before, after = (RANKS.get(each.row["source"], 0) for each in (older, newer))
    return newer if after >= before else older


class TwoOrderings(RecordMerger):
    """By time, and by a sequence number within one time."""

    strategy_id = "a4700000-0000-4000-8000-00000000000d"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.record is None or older.record is None:
            return newer
        before, after = (tuple(context.get_value(each, name) for name in ("ts", "seq")) for each in (older, newer))
        return newer if after >= before else older


def two_orderings(older: Version, newer: Version) -> Version:
    if newer.row is None or older.row is None:
        return newer
    before, after = ((each.row["ts"], each.row["seq"]) for each in (older, newer))
    return newer if after >= before else older


class LatestByBatch(RecordMerger):
    """By time, many pairs at once; deletes without data count at once."""

    strategy_id = "a4700000-0000-4000-8000-00000000000e"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.record is None or older.record is None:
            return newer
        return newer if context.get_value(newer, "ts") >= context.get_value(older, "ts") else older

    def merge_batch(self, older: BufferedBatch, newer: BufferedBatch, context: Any, props: Any) -> BufferedBatch:
        later = pc.greater_equal(newer.column("ts"), older.column("ts")).fill_null(True)
        return newer.where(later, older)


def latest(older: Version, newer: Version) -> Version:
    if newer.row is None or older.row is None:
        return newer
    return newer if newer.row["ts"] >= older.row["ts"] else older


class Capped(RecordMerger):
    """Numbers add up; a sum above a limit deletes the record, and the delete keeps its data."""

    strategy_id = "a4700000-0000-4000-8000-00000000000f"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.record is None or newer.record is None:
            return newer
        total = (context.get_value(older, "n") or 0) + (context.get_value(newer, "n") or 0)
        merged = context.replace(newer, n=total)
        return context.delete(merged) if total > LIMIT else merged


def capped(older: Version, newer: Version) -> Version:
    if older.row is None or newer.row is None:
        return newer
    total = (older.row["n"] or 0) + (newer.row["n"] or 0)
    merged = _set(newer, n=total)
    return replace(merged, dead=True) if total > LIMIT else merged


class SoftDelete(RecordMerger):
    """A delete leaves the row, and says so in it."""

    strategy_id = "a4700000-0000-4000-8000-000000000010"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.is_delete and older.record is not None and not older.is_delete:
            return context.replace(older, b="gone")
        return newer


def soft_delete(older: Version, newer: Version) -> Version:
    return _set(older, b="gone") if newer.dead and not older.dead and older.row is not None else newer


class Constructed(RecordMerger):
    """A row that is made from nothing."""

    strategy_id = "a4700000-0000-4000-8000-000000000011"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        values = {name: context.get_value(newer, name) for name in ("id", "part", "ts", "tags", "place")}
        values["n"] = max(context.get_value(older, "n") or 0, context.get_value(newer, "n") or 0)
        return context.construct(newer.record_key, values)


def _made(older: Version, newer: Version, names: tuple[str, ...]) -> Version:
    if (said := _latest_delete(older, newer)) is not None:
        return said
    row: Row = {**dict.fromkeys(SCHEMA.names), **{name: newer.row[name] for name in names}}
    return Version({**row, "n": max(older.row["n"] or 0, newer.row["n"] or 0)})


def constructed(older: Version, newer: Version) -> Version:
    return _made(older, newer, ("id", "part", "ts", "tags", "place"))


class Buffered(RecordMerger):
    """A row that is made of a plain dict."""

    strategy_id = "a4700000-0000-4000-8000-000000000012"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        n = max(context.get_value(older, "n") or 0, context.get_value(newer, "n") or 0)
        row = {"_hoodie_record_key": newer.record_key, "n": n}
        return context.buffered(row | {name: context.get_value(newer, name) for name in ("id", "part", "ts", "place")})


def buffered(older: Version, newer: Version) -> Version:
    return _made(older, newer, ("id", "part", "ts", "place"))


RULES: Mapping[type[RecordMerger], Rule] = {
    Tombstones: tombstones,
    StaysDead: stays_dead,
    LastWriterPerColumn: last_writer_per_column,
    Counter: counter,
    CounterByBatch: counter,
    SetUnion: set_union,
    LastThree: last_three,
    FirstNonNull: first_non_null,
    FirstNonNullByBatch: first_non_null,
    Watermark: watermark,
    NestedMerge: nested_merge,
    SourcePriority: source_priority,
    TwoOrderings: two_orderings,
    LatestByBatch: latest,
    Capped: capped,
    SoftDelete: soft_delete,
    Constructed: constructed,
    Buffered: buffered,
}
