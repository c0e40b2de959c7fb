"""Compare an answer with the one Java Hudi gave: same columns, same types, same rows, in any row order.

Types compare by the values they can hold: physical choices of Arrow (large or view layouts, dictionaries, field names
inside lists, nanoseconds) do not count. Values compare exactly; NaN equals NaN and the entries of a map have no order.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable
from typing import Any

import pyarrow as pa

SHOWN = 3


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The simplest Arrow type that holds the same values."""
    is_ = pa.types
    if is_.is_dictionary(kind):
        return plain_type(kind.value_type)
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.string()
    if is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_binary_view(kind) or is_.is_fixed_size_binary(kind):
        return pa.binary()
    if is_.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if is_.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if is_.is_struct(kind):
        return pa.struct([(field.name, plain_type(field.type)) for field in kind])
    return kind


def comparable(value: Any, kind: pa.DataType) -> Hashable:
    """A hashable value that is equal for equal values of the type."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return "NaN" if math.isnan(value) else (value, math.copysign(1.0, value))
    if pa.types.is_struct(kind):
        return tuple(comparable(value[field.name], field.type) for field in kind)
    if pa.types.is_map(kind):
        entries = Counter((comparable(k, kind.key_type), comparable(v, kind.item_type)) for k, v in value)
        return frozenset(entries.items())
    if pa.types.is_list(kind):
        return tuple(comparable(item, kind.value_type) for item in value)
    return value


def plain_images(table: pa.Table) -> pa.Table:
    """Bring the texts of images to one form: Java leaves meta columns in some, and writes ``null`` for some missing."""
    for at, name in enumerate(table.column_names):
        if name in ("before", "after"):
            parsed = [None if text is None else json.loads(text) for text in table[name].to_pylist()]
            shown = [
                None
                if image is None
                else json.dumps({key: image[key] for key in sorted(image) if not key.startswith("_hoodie_")})
                for image in parsed
            ]
            table = table.set_column(at, name, pa.array(shown, pa.string()))
    return table


def row_counts(table: pa.Table) -> Counter[tuple[Hashable, ...]]:
    """How often each row occurs."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = plain_type(field.type)
        columns.append([comparable(value, kind) for value in column.cast(kind).to_pylist()])
    return Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})


def differences(actual: pa.Table, expected: pa.Table) -> list[str]:
    """What is wrong with ``actual``, in sentences; empty when it equals ``expected``."""
    if not expected.num_columns:  # Spark writes the answer of an empty table without columns
        return [f"{actual.num_rows} rows where none were expected"] if actual.num_rows else []
    if actual.column_names != expected.column_names:
        return [f"columns are {actual.column_names}, expected {expected.column_names}"]
    wrong = [
        f"type of {got.name} is {got.type}, expected {want.type}"
        for got, want in zip(actual.schema, expected.schema, strict=True)
        if plain_type(got.type) != plain_type(want.type)
    ]
    if wrong:
        return wrong
    got_rows, want_rows = row_counts(actual), row_counts(expected)
    missing, extra = want_rows - got_rows, got_rows - want_rows
    if missing or extra:
        wrong.append(
            f"{missing.total()} of {expected.num_rows} rows are missing and {extra.total()} are unexpected; "
            f"columns {expected.column_names}"
        )
        wrong += [f"missing    {row}" for row in list(missing)[:SHOWN]]
        wrong += [f"unexpected {row}" for row in list(extra)[:SHOWN]]
    return wrong
