"""Tell a table's data columns from Hudi's meta columns.

Rows of a scan have all five meta columns and may be written again: the meta columns are ignored, as in Java Hudi. A
single column with such a name, or with another type, is the user's own column. It would be lost, so it is refused; Java
drops it. Inside a struct the names are allowed.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.arrow.fields import is_text
from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.column_names import fold_case
from hoodie_py.formats.names import META_FIELDS, OPERATION_FIELD

NOT_DATA = (*META_FIELDS, OPERATION_FIELD)
_RESERVED = {fold_case(name): name for name in NOT_DATA}


def select_data_columns(schema: pa.Schema) -> pa.Schema:
    """Return a schema without meta columns."""
    return pa.schema([field for field in schema if field.name not in NOT_DATA])


def select_user_columns(schema: pa.Schema) -> pa.Schema:
    """Return the columns that a user gave, without meta columns.

    ``_hoodie_operation`` says what each row does, so it may come without the other meta columns.

    Raises:
        InvalidQueryError: a column has the name of a meta column but is not one.
    """
    scanned = set(META_FIELDS) <= set(schema.names)
    for field in schema:
        name = _RESERVED.get(fold_case(field.name))
        if name is None or (name == field.name and _may_be_text(field.type) and (scanned or name == OPERATION_FIELD)):
            continue
        raise InvalidQueryError(
            f"The column {field.name!r} has the name of a meta column, which Hudi writes itself.",
            hint="Rename it. Rows of a scan bring all five meta columns, which count for nothing.",
            column=field.name,
        )
    return select_data_columns(schema)


def _may_be_text(type_: pa.DataType) -> bool:
    kind = type_.value_type if pa.types.is_dictionary(type_) else type_
    return is_text(kind) or bool(pa.types.is_null(kind))
