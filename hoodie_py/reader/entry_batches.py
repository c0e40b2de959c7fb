"""Converts log entries to record batches for spill files, and back; the row store keeps their rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from hoodie_py.reader.arrow_context import ArrowRecordContext
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.ordering import OrderingColumn

_ORDER = "order."
_EXTRA = "extra."


def count_entry_bytes(entries: BufferedBatch) -> int:
    """Count the bytes of entries without their rows."""
    return int(entries.keys.nbytes + entries.rows.nbytes + entries.codes.nbytes + entries.order.nbytes)


def to_entry_batch(entries: BufferedBatch, extra: Mapping[str, np.ndarray]) -> pa.RecordBatch:
    """Return entries as a record batch.

    Args:
        entries: the entries.
        extra: further columns of integers, by name.
    """
    from hoodie_py.reader.foreign_text import encode_foreign

    columns = {"key": entries.keys, "row": pa.array(entries.rows), "code": pa.array(entries.codes)}
    columns["foreign"] = encode_foreign(entries.order.foreign, len(entries))
    columns |= {f"{_ORDER}{name}": column for name, column in entries.order.to_stored_columns().items()}
    columns |= {f"{_EXTRA}{name}": pa.array(values) for name, values in extra.items()}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def from_entry_batch(context: ArrowRecordContext, batch: pa.RecordBatch) -> BufferedBatch:
    """Return the entries that ``to_entry_batch`` made a batch of; they share its memory."""
    from hoodie_py.reader.foreign_text import decode_foreign

    names = batch.schema.names
    order = {name.removeprefix(_ORDER): batch.column(name) for name in names if name.startswith(_ORDER)}
    rows, codes = batch.column("row").to_numpy().view(), batch.column("code").to_numpy().view()
    ordering = OrderingColumn.from_stored_columns(order, decode_foreign(batch.column("foreign")))
    return BufferedBatch(context, batch.column("key"), rows, ordering, codes)


def get_extra(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """Return a further column of integers."""
    return np.asarray(batch.column(f"{_EXTRA}{name}").to_numpy())
