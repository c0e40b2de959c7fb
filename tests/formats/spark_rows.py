"""Batches as the product's reader gives them, column by column."""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.formats.parquet.decoder import cast_to_spark_type


def to_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert the columns of a batch, by place, to the fields of a schema in the types of Spark's reader."""
    if batch.schema.equals(schema):
        return batch
    arrays = [cast_to_spark_type(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    if not arrays:
        return batch
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
