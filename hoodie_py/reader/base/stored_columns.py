"""StoredColumns: the columns of a base file that is not Parquet, and the conversion of its rows to a read's schema.

Batches are converted from the file's types to Spark's types, then to the read's schema.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hoodie_py.arrow.arrays import make_batch_without_columns
from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.arrow_types import find_mistyped_times, retype_times
from hoodie_py.formats.parquet.decoder import cast_to_spark_type, convert_to_spark_schema
from hoodie_py.reader.schema_evolution.by_name import Conformer

Repair = Callable[[pa.Array], pa.Array]


class StoredColumns:
    """The columns of one file.

    ``times``: declared types of time columns, which may differ from the file's (``list_declared_times``). ``repair``
    maps a stored type to the type that its values really mean.

    Raises:
        UnsupportedFeatureError: a column of a type that Spark does not have.
    """

    def __init__(
        self, stored: pa.Schema, times: pa.Schema | None, repair: Callable[[pa.DataType], pa.DataType] | None = None
    ) -> None:
        self._retyped = find_mistyped_times(stored, times)
        right = [field.with_type(self._retyped.get(field.name, field.type)) for field in stored]
        if repair is not None:
            right = [field.with_type(repair(field.type)) for field in right]
        self.schema = convert_to_spark_schema(pa.schema(right))
        self.retyped = frozenset(self._retyped)

    def make_conformer(self, schema: pa.Schema) -> Callable[[pa.RecordBatch, Repair | None], pa.RecordBatch]:
        """Return a function that converts the file's batches to a schema; it raises as ``Conformer``.

        Its second argument converts columns to the types that ``repair`` gives.
        """
        conform = Conformer(schema)
        return lambda batch, repair: conform(self._convert(batch, repair))

    def _convert(self, batch: pa.RecordBatch, repair: Repair | None) -> pa.RecordBatch:
        """Convert a batch, with any of the columns, to Spark's types."""
        batch = retype_times(batch, self._retyped)
        fields = [self.schema.field(name) for name in batch.schema.names]
        arrays = []
        for field, array in zip(fields, batch.columns, strict=True):
            try:
                arrays.append(cast_to_spark_type(array if repair is None else repair(array), field.type))
            except HoodieError as error:
                raise error.locate(column=field.name) from None
        if not arrays:
            return make_batch_without_columns(batch.num_rows)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in fields]))
