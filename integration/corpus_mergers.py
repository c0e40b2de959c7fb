"""Mergers of the reference tables that Java Hudi wrote with custom mergers, by the name that case.json gives them."""

from __future__ import annotations

from typing import Any

from hoodie_py import BufferedRecord, RecordMerger

Record = BufferedRecord[Any]


class _Listed(RecordMerger):
    """Reads only the columns it names beside keys and ordering."""

    projection_compatible = True
    looks_at: tuple[str, ...] = ()

    def mandatory_fields(self, schema: Any, config: Any, props: Any) -> list[str]:
        return [*super().mandatory_fields(schema, config, props), *self.looks_at]


class HighestPrice(_Listed):
    """Deletes stay; else the higher price, a missing one lowest, the newer on a tie."""

    strategy_id = "6b1f0c52-3a5e-4d0b-9d57-0c4f7a1e0001"
    looks_at = ("price",)

    def merge(self, older: Record, newer: Record, context: Any, props: Any) -> Record:
        if older.is_delete or newer.is_delete:
            return older if older.is_delete else newer
        before, after = context.get_value(older, "price"), context.get_value(newer, "price")
        return older if before is not None and (after is None or after < before) else newer


class CustomOrdering(_Listed):
    """By ts, deletes with data too; a bare delete gives way to any row and spares live rows of qty 100 and more."""

    strategy_id = "6b1f0c52-3a5e-4d0b-9d57-0c4f7a1e0002"
    looks_at = ("ts", "qty")

    def merge(self, older: Record, newer: Record, context: Any, props: Any) -> Record:
        if newer.record is None:
            spared = not older.is_delete and (context.get_value(older, "qty") or 0) >= 100
            return older if spared else newer
        before, after = context.get_value(older, "ts"), context.get_value(newer, "ts")
        return older if before is not None and (after is None or after < before) else newer


class Accumulate(_Listed):
    """Adds quantities; a sum above the limit deletes the row and keeps its data; deletes take no part."""

    strategy_id = "6b1f0c52-3a5e-4d0b-9d57-0c4f7a1e0003"
    looks_at = ("qty",)

    def merge(self, older: Record, newer: Record, context: Any, props: Any) -> Record:
        if older.is_delete or newer.is_delete:
            return newer
        total = sum(context.get_value(side, "qty") or 0 for side in (older, newer))
        summed = context.replace(newer, qty=total)
        return context.delete(summed) if total > int(props.get("accumulate.limit", "100")) else summed


class FirstWins(_Listed):
    """The first version stays until it is deleted."""

    strategy_id = "6b1f0c52-3a5e-4d0b-9d57-0c4f7a1e0004"

    def merge(self, older: Record, newer: Record, context: Any, props: Any) -> Record:
        return newer if newer.is_delete > older.is_delete else older


CORPUS_MERGERS: dict[str, type[RecordMerger]] = {
    "highest_price": HighestPrice,
    "custom_ordering": CustomOrdering,
    "accumulate": Accumulate,
    "first_wins": FirstWins,
}
