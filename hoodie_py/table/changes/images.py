"""Images: changed rows in the form that queries return, with the columns op, ts_ms, before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, make_batch_without_columns, repeat_value, take
from hoodie_py.formats.names import BEFORE, OP, TIME
from hoodie_py.reader.changes.row_changes import RowChanges
from hoodie_py.reader.record.record import DELETE, INSERT
from hoodie_py.table.changes.json_text import AVRO, JACKSON, write_json

_NAMES = pa.array(["i", None, "u", "d"])  # by the code of the operation


@dataclass(frozen=True, slots=True)
class Images:
    """Changes, and which of their sides came from a change log."""

    changes: RowChanges
    logged: frozenset[str] = frozenset()

    def cut(self, start: int, stop: int) -> Images:
        """Return some of the changes."""
        whole = self.changes
        if start == 0 and stop >= len(whole.codes):
            return self
        size = stop - start
        some = RowChanges(
            whole.instant, whole.codes[start:stop], whole.before.slice(start, size), whole.after.slice(start, size)
        )
        return Images(some, self.logged)


def make_change_batch(images: Images, schema: pa.Schema) -> pa.RecordBatch:
    """Return changes with the columns of a schema, which has some of the columns of ``make_change_schema``."""
    changes = images.changes
    count = len(changes.codes)
    if not schema.names:
        return make_batch_without_columns(count)
    arrays = []
    for field in schema:
        if field.name == OP:
            arrays.append(take(_NAMES, from_numpy(changes.codes)))
        elif field.name == TIME:
            arrays.append(repeat_value(changes.instant, pa.string(), count))
        else:
            rows, missing = (changes.before, INSERT) if field.name == BEFORE else (changes.after, DELETE)
            arrays.append(_make_image(rows, changes.codes == missing, field.type, field.name in images.logged))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make_image(rows: pa.RecordBatch, missing: np.ndarray, type_: pa.DataType, logged: bool) -> pa.Array:
    fields = [field.with_nullable(True) for field in rows.schema]
    structs = pa.StructArray.from_arrays(rows.columns, fields=fields, mask=from_numpy(missing))
    if pa.types.is_struct(type_):
        return structs if structs.type.equals(type_) else structs.cast(type_)
    return write_json(structs, AVRO if logged else JACKSON)
