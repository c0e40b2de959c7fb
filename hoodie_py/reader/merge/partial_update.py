"""Partial updates: the winner of a pair takes values from the loser.

There are two kinds (Hudi's PartialUpdateHandler, and partialMerge of its Spark mergers). They are never mixed:

* A table's partial update mode works on full rows. With IGNORE_DEFAULTS the winner takes the loser's value where its
  own is the column's default (null, or the schema's default for booleans and small integers); with FILL_UNAVAILABLE
  where its text equals the table's placeholder for "not available".
* Partial log blocks have rows that lack columns. The winner takes the loser's value where its own is absent. A null is
  a value, not an absence.

In this module ``high`` is the winner and ``low`` the loser of each pair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, from_numpy, is_valid, take, to_booleans
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import UNAVAILABLE_VALUE
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import DELETE, NO_OPERATION

_SMALL_INTS = range(-128, 128)  # Hudi compares objects with ==, which is true only for the integers that Java caches


class PartialUpdateHandler(ABC):
    """Decides which values of the winner are replaced by the loser's."""

    @abstractmethod
    def find_replaced(self, name: str, values: pa.Array, default: Any) -> np.ndarray | None:
        """Return for each record whether the loser's value replaces the winner's; None if it does for none.

        ``values``: the winners' values of a column. ``default``: the column's default in the table schema.
        """


class IgnoreDefaults(PartialUpdateHandler):
    """A winner's default value means "not given"."""

    def find_replaced(self, name: str, values: pa.Array, default: Any) -> np.ndarray | None:
        if default is None:
            return ~is_valid(values) if values.null_count else None
        is_flag = isinstance(default, bool) and pa.types.is_boolean(values.type)
        if is_flag or (isinstance(default, int) and default in _SMALL_INTS and pa.types.is_integer(values.type)):
            return to_booleans(call("equal", values, pa.scalar(default)))
        return None


class FillUnavailable(PartialUpdateHandler):
    """A winner's placeholder text means "not available"; without a placeholder no value is replaced.

    Hudi's writers fill binary columns, too; its Spark readers do not.
    """

    def __init__(self, placeholder: str | None, *, binary: bool = False) -> None:
        self._placeholder = placeholder
        self._binary = binary

    def find_replaced(self, name: str, values: pa.Array, default: Any) -> np.ndarray | None:
        if self._placeholder is None:
            return None
        if pa.types.is_string(values.type):
            return to_booleans(call("equal", values, pa.scalar(self._placeholder)))
        if self._binary and pa.types.is_binary(values.type):
            return to_booleans(call("equal", values, pa.scalar(self._placeholder.encode(), values.type)))
        return None


def make_partial_update_handler(config: TableConfig, *, writing: bool = False) -> PartialUpdateHandler | None:
    """Make the handler of a table's partial update mode, for a read or a write; None for a table without one.

    Raises:
        InvalidTableError: the mode is unknown.
    """
    mode = config.partial_update_mode
    if mode is None:
        return None
    if mode == "IGNORE_DEFAULTS":
        return IgnoreDefaults()
    if mode == "FILL_UNAVAILABLE":
        return FillUnavailable(config.merge_properties.get(UNAVAILABLE_VALUE), binary=writing)
    raise InvalidTableError(f"Unknown partial update mode {mode!r}.", table=config.name)


def fill_values(
    low: BufferedBatch, high: BufferedBatch, rows: np.ndarray, handler: PartialUpdateHandler
) -> BufferedBatch:
    """Return the winners; in the rows marked by ``rows`` they take the losers' values that the handler chooses."""
    at = np.flatnonzero(rows)
    takes: dict[str, np.ndarray] = {}
    upper = high.take(at)
    for name in high.context.schema.names:
        stands = handler.find_replaced(name, upper.column(name), high.context.defaults.get(name))
        if stands is not None and stands.any():
            takes[name] = stands
    return _patch_rows(low.take(at), upper, high, at, takes)


def combine_columns(low: BufferedBatch, high: BufferedBatch, rows: np.ndarray) -> BufferedBatch:
    """Return the winners; in the rows marked by ``rows`` they take the columns that they lack from the losers."""
    at = np.flatnonzero(rows)
    lower, upper = low.take(at), high.take(at)
    takes: dict[str, np.ndarray] = {}
    for name in high.context.schema.names:
        stands = ~upper.has_values(name) & lower.has_values(name)
        if stands.any():
            takes[name] = stands
    result = _patch_rows(lower, upper, high, at, takes)
    codes = result.codes.copy()
    codes[at] = np.where(upper.deletes, np.int8(DELETE), np.int8(NO_OPERATION))
    return BufferedBatch(result.context, result.keys, result.rows, result.order, codes)


def _patch_rows(
    lower: BufferedBatch, upper: BufferedBatch, high: BufferedBatch, at: np.ndarray, takes: Mapping[str, np.ndarray]
) -> BufferedBatch:
    """Make new rows for the winners that take values; all other winners keep their handles.

    Args:
        lower: the losers that may give values.
        upper: the winners that may take values, aligned with ``lower``.
        high: all winners.
        at: indices of ``upper`` in ``high``.
        takes: for each column a mask over ``upper``: whether it takes the loser's value.
    """
    if not takes:
        return high
    changed = np.flatnonzero(np.logical_or.reduce(list(takes.values())))
    mine, theirs = upper.take(changed), lower.take(changed)
    context = high.context
    batch = context.store.take(mine.rows)
    absent: dict[str, np.ndarray] = {}
    for i, field in enumerate(context.schema):
        stands = takes.get(field.name)
        missing = ~mine.has_values(field.name)
        if stands is not None:
            mask = stands[changed]
            values = choose_values(mask, theirs.column(field.name), batch.column(i))
            batch = batch.set_column(i, field.with_nullable(True), values)
            missing &= ~mask
        if missing.any():
            absent[field.name] = missing
    rows = high.rows.copy()
    first = context.store.add(batch, absent)
    rows[at[changed]] = np.arange(first, first + len(changed))
    return BufferedBatch(context, high.keys, rows, high.order, high.codes)


def choose_values(mask: np.ndarray, first: pa.Array, second: pa.Array) -> pa.Array:
    """Choose row by row between two columns, which may be nested."""
    if not pa.types.is_nested(first.type):
        return call("if_else", from_numpy(mask), first, second)
    both = pa.concat_arrays([first, second])  # if_else does not take nested types, so gather from both
    return take(both, from_numpy(np.where(mask, np.arange(len(mask)), np.arange(len(mask)) + len(mask))))
