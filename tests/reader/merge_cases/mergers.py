"""The mergers that cases name, as a user of the package would write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from hoodie_py import DEFAULT_ORDERING, BufferedRecord, HoodieOperation, RecordContext, RecordMerger

Record = BufferedRecord[Any]
Context = RecordContext[Any]


class OddKey(RecordMerger):
    """The higher ordering value wins; of winning rows those with an odd key live."""

    strategy_id = "odd"

    def merge(self, older: Record, newer: Record, context: Context, props: Mapping[str, str]) -> Record:
        winner = newer if newer.ordering_value >= older.ordering_value else older
        if winner.is_delete or int(winner.record_key) % 2:
            return winner
        return BufferedRecord(winner.record_key, DEFAULT_ORDERING, None, None, HoodieOperation.DELETE)


class CounterSum(RecordMerger):
    """Adds counters; a sum above two deletes."""

    strategy_id = "counter"

    def merge(self, older: Record, newer: Record, context: Context, props: Mapping[str, str]) -> Record:
        if newer.is_delete:
            return newer
        if context.get_value(older, "ts") == context.get_value(newer, "ts"):
            return older
        total = (context.get_value(older, "counter") or 0) + context.get_value(newer, "counter")
        return context.delete(newer) if total > 2 else context.replace(newer, counter=total)


class AlwaysOlder(RecordMerger):
    """The first version stays."""

    strategy_id = "older"

    def merge(self, older: Record, newer: Record, context: Context, props: Mapping[str, str]) -> Record:
        return older


class Undelete(RecordMerger):
    """A delete of a row that has data brings back a live copy of it."""

    strategy_id = "undelete"

    def merge(self, older: Record, newer: Record, context: Context, props: Mapping[str, str]) -> Record:
        schema = context.decode_schema(older.schema_id)
        if not newer.is_delete or older.record is None or schema is None:
            return newer
        copy = context.construct(older.record_key, {name: context.get_value(older, name) for name in schema.names})
        return replace(copy, ordering_value=older.ordering_value, operation=None)


class OverwriteWithLatest(RecordMerger):
    """The last version stays."""

    strategy_id = "overwrite_with_latest"

    def merge(self, older: Record, newer: Record, context: Context, props: Mapping[str, str]) -> Record:
        return newer


class StandIn(OverwriteWithLatest):
    """Stands in for payload classes that no merger of the package stands for; tests name the classes."""

    payload_classes: ClassVar[tuple[str, ...]] = ()


MERGERS: dict[str, type[RecordMerger]] = {
    "odd_key": OddKey,
    "counter_sum": CounterSum,
    "always_older": AlwaysOlder,
    "undelete": Undelete,
    "overwrite_with_latest": OverwriteWithLatest,
}


def dotted(names: str) -> str:
    """Turn a comma list of the cases' merger names into the Python paths a user would write."""
    found = (MERGERS.get(name.strip()) for name in names.split(","))
    return ",".join(f"{cls.__module__}.{cls.__name__}" for cls in found if cls is not None)


def merger_of(config: Mapping[str, Any]) -> type[RecordMerger] | None:
    """The merger class that a case's configuration names."""
    name = config.get("custom_merger")
    return MERGERS[name] if name else None
