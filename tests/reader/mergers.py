"""Record mergers that tests share: five that a user could have written, one of them with a batch form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from hoodie_py import BufferedBatch, BufferedRecord, RecordMerger


class Named(RecordMerger):
    """A merger that lists what it looks at."""

    projection_compatible = True
    looks_at: tuple[str, ...] = ()

    def mandatory_fields(self, schema: Any, config: Any, props: Any) -> list[str]:
        return [*super().mandatory_fields(schema, config, props), *self.looks_at]


class Dearest(Named):
    """Deletes win; else the higher price, the newer on a tie; no price is the lowest."""

    strategy_id = "a2000000-0000-4000-8000-000000000001"
    looks_at = ("price",)

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> BufferedRecord[Any]:
        if older.is_delete or newer.is_delete:
            return older if older.is_delete else newer
        a, b = context.get_value(older, "price"), context.get_value(newer, "price")
        return newer if a is None or (b is not None and b >= a) else older

    def merge_batch(self, older: BufferedBatch, newer: BufferedBatch, context: Any, props: Any) -> BufferedBatch:
        a, b = older.column("price"), newer.column("price")
        wins = pc.or_kleene(pc.is_null(a), pc.greater_equal(b, a)).fill_null(False)
        wins = np.asarray(pc.and_(pc.or_(wins, newer.is_delete), pc.invert(older.is_delete)))
        return newer.where(wins, older)


class Largest(Named):
    """A large older quantity outlives deletes without data; everything else by ts, the newer on a tie."""

    strategy_id = "a2000000-0000-4000-8000-000000000002"
    looks_at = ("ts", "qty")

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> BufferedRecord[Any]:
        if newer.record is None:
            qty = context.get_value(older, "qty")
            return older if not older.is_delete and qty is not None and qty >= 100 else newer
        if older.record is None:
            return newer
        a, b = context.get_value(older, "ts"), context.get_value(newer, "ts")
        return newer if a is None or (b is not None and b >= a) else older


class Sums(Named):
    """Adds quantities up; a sum above the limit deletes the record and keeps its data."""

    strategy_id = "a2000000-0000-4000-8000-000000000003"
    looks_at = ("qty",)

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> BufferedRecord[Any]:
        if older.is_delete or newer.is_delete:
            return newer
        total = sum(context.get_value(rec, "qty") or 0 for rec in (older, newer))
        merged = context.replace(newer, qty=total)
        return context.delete(merged) if total > int(props.get("limit", "150")) else merged


class Founder(Named):
    """The first version stays, until it is deleted."""

    strategy_id = "a2000000-0000-4000-8000-000000000004"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> BufferedRecord[Any]:
        return newer if newer.is_delete and not older.is_delete else older


class Undoing(RecordMerger):
    """A row with quantity 0 deletes the older one; a delete without data on a large quantity empties it instead."""

    strategy_id = "a2000000-0000-4000-8000-000000000005"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> BufferedRecord[Any]:
        if older.is_delete or newer.is_delete:
            large = not older.is_delete and (context.get_value(older, "qty") or 0) >= 100
            return context.replace(older, qty=0) if large and newer.record is None else newer
        return context.delete(older) if context.get_value(newer, "qty") == 0 else newer

    def partial_merge(
        self, older: Any, newer: Any, reader_schema: Any, context: Any, props: Any
    ) -> BufferedRecord[Any]:
        """The newer row completed from the older one."""
        if newer.is_delete or older.is_delete:
            return newer
        lacking = [name for name in reader_schema.names if not context.has_value(newer, name)]
        kept = {name: context.get_value(older, name) for name in lacking if context.has_value(older, name)}
        return context.replace(newer, **kept) if kept else newer


MERGERS = (Dearest, Largest, Sums, Founder, Undoing)
