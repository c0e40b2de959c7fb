"""The columns of change data (Hudi ``CDCRelation.FULL_CDC_SPARK_SCHEMA``)."""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.arrow.fields import make_nullable
from hoodie_py.formats.names import AFTER, BEFORE, META_FIELDS_WITH_OPERATION, OP, TIME


def make_change_schema(table: pa.Schema, *, as_structs: bool) -> pa.Schema:
    """Return the columns of change data; images are JSON texts, or structs of the table's columns."""
    image = pa.struct(list(list_image_fields(table))) if as_structs else pa.string()
    return pa.schema([(OP, pa.string()), (TIME, pa.string()), (BEFORE, image), (AFTER, image)])


def list_image_fields(table: pa.Schema) -> pa.Schema:
    """Return the columns of an image: the table's columns without Hudi's own."""
    return make_nullable(field for field in table if field.name not in META_FIELDS_WITH_OPERATION)
