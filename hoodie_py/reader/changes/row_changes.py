"""RowChanges: rows before and after a commit, and their form in spill files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, make_batch_without_columns

_CODE, _BEFORE, _AFTER = "code", "before.", "after."


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Some rows that one commit changed.

    Attributes:
        instant: the commit.
        codes: int8 codes of the operations INSERT, UPDATE and DELETE.
        before: the rows before the commit; null in every column where they are inserted.
        after: the rows after it; null in every column where they are deleted.
    """

    instant: str
    codes: np.ndarray
    before: pa.RecordBatch
    after: pa.RecordBatch

    def to_batch(self) -> pa.RecordBatch:
        """Return the changes as one batch, without the commit."""
        columns = {_CODE: from_numpy(self.codes)}
        for prefix, rows in ((_BEFORE, self.before), (_AFTER, self.after)):
            columns |= {prefix + name: rows.column(at) for at, name in enumerate(rows.schema.names)}
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    @classmethod
    def from_batch(cls, instant: str, batch: pa.RecordBatch) -> RowChanges:
        """Return the changes of a batch made by ``to_batch``."""
        return cls(instant, batch.column(0).to_numpy(), _take_side(batch, _BEFORE), _take_side(batch, _AFTER))


def _take_side(batch: pa.RecordBatch, prefix: str) -> pa.RecordBatch:
    names = [name for name in batch.schema.names if name.startswith(prefix)]
    if not names:
        return make_batch_without_columns(batch.num_rows)
    return batch.select(names).rename_columns([name.removeprefix(prefix) for name in names])
