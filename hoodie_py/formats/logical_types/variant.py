"""VARIANT: values without a fixed schema, as two byte strings (HoodieSchema.Variant).

The bytes are the Parquet variant encoding: ``metadata`` is a dictionary of field names, ``value`` the value.
``variant_json`` prints them. A file may also contain shredded variants: a third field ``typed_value`` holds the values,
or parts of them, that fit a type. These are refused: without ``typed_value`` such rows would lose values.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.logical_types import VARIANT, read_type_name

METADATA, VALUE, TYPED_VALUE = "metadata", "value", "typed_value"
VARIANT_TYPE = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in (METADATA, VALUE)])


def write_variant(name: str, namespace: str) -> dict[str, Any]:
    """Make the Avro schema of a column ``name`` in the record ``namespace``, as parsed JSON."""
    fields = [{"name": part, "type": "bytes", "doc": f"Variant {part} component"} for part in (METADATA, VALUE)]
    return {"type": "record", "name": name, "namespace": namespace, "fields": fields, "logicalType": VARIANT}


def check_variant(type_: pa.DataType) -> None:
    """Check that a column marked as VARIANT has the fields of one.

    Raises InvalidQueryError if it does not.
    """
    if not pa.types.is_struct(type_) or sorted(field.name for field in type_) != [METADATA, VALUE]:
        raise InvalidQueryError(f"A column marked as VARIANT has the type {type_}.", hint=f"Give it {VARIANT_TYPE}.")


def is_variant(field: pa.Field) -> bool:
    """Say whether a field's metadata names this type."""
    return (read_type_name(field) or "").lower() == VARIANT


def refuse_shredded(type_: pa.DataType) -> None:
    """Raise UnsupportedFeatureError if a column of variants is stored shredded."""
    if pa.types.is_struct(type_) and type_.get_field_index(TYPED_VALUE) >= 0:
        raise UnsupportedFeatureError(
            "Shredded variants, whose values are stored in columns of their own (typed_value).",
            hint="Rewrite the table with hoodie.parquet.variant.write.shredding.enabled=false.",
        )
