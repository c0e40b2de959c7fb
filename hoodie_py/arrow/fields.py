"""Find fields in Arrow schemas and batches by name; dots name nested fields (``meta.ts``).

A column whose own name contains dots takes precedence over a nested field of that path.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError

_COMPARED = 1000  # names that are compared letter by letter; more would take long

_LISTS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view,
    pa.types.is_large_list_view,
)  # fmt: skip


def find_top_level_name(schema: pa.Schema, name: str) -> str:
    """Return the column that holds a field: the name itself if it is a column, else the part before the first dot."""
    return name if name in schema.names else name.split(".", maxsplit=1)[0]


def has_field(schema: pa.Schema, name: str) -> bool:
    """Say whether a column or nested field exists."""
    return find_field_type(schema, name) is not None


def find_field_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Return the type of a column or nested field; None if the schema lacks it."""
    if name in schema.names:
        return schema.field(name).type
    head, *path = name.split(".")
    if head not in schema.names:
        return None
    type_ = schema.field(head).type
    for part in path:
        if not pa.types.is_struct(type_) or type_.get_field_index(part) < 0:
            return None
        type_ = type_.field(part).type
    return type_


def find_declared_types(
    names: Sequence[str], types: Sequence[pa.DataType], times: pa.Schema | None
) -> tuple[pa.DataType, ...]:
    """Return the types of fields; timestamps get the unit that the table declares (``formats.declared_times``).

    ``types`` are the fields' types in the rows, ``times`` the declared types of time columns; None if there are none.
    """
    if times is None:
        return tuple(types)
    return tuple(
        (find_field_type(times, name) if pa.types.is_timestamp(type_) else None) or type_
        for name, type_ in zip(names, types, strict=True)
    )


def is_text(type_: pa.DataType) -> bool:
    """Say whether a type is a string in any of Arrow's layouts, or a dictionary of strings."""
    kind = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_any_list(type_: pa.DataType) -> bool:
    """Say whether a type is a list, in any of Arrow's layouts."""
    return any(is_kind(type_) for is_kind in _LISTS)


def read_field_values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the values of a column or nested field; null where a parent is null."""
    if name in batch.schema.names:
        return batch.column(name)
    import pyarrow.compute as pc

    head, *path = name.split(".")
    return pc.struct_field(batch.column(head), path)


def check_columns(names: Sequence[str], schema: pa.Schema) -> None:
    """Check the requested columns of a read. Raises InvalidQueryError if a column is unknown or named twice."""
    seen: set[str] = set()
    known = frozenset(schema.names)
    for name in names:
        if name not in known:
            raise InvalidQueryError(f"Unknown column {name!r}.", hint=_describe_columns(str(name), schema.names))
        if name in seen:
            raise InvalidQueryError(f"Column {name!r} is asked for twice.")
        seen.add(name)


def _describe_columns(name: str, known: Sequence[str]) -> str:
    """Say which columns there are, the likely ones first."""
    close = find_similar_names(name, known)
    meant = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    return f"{meant}The table has: {', '.join(known)}."


def find_similar_names(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three names that a mistyped one may mean: names that differ in case only, else similar ones."""
    same = [each for each in known[:_COMPARED] if each.lower() == name.lower()]
    return same or difflib.get_close_matches(name, known[:_COMPARED], n=3)


def relax_structs(field: pa.Field) -> pa.Field:
    """Return a field whose nested struct fields are all nullable, as in Spark's results.

    Fields of a null struct are null, and Arrow's casts refuse a null in a required field. A type that needs no change
    is returned as the same object.
    """
    type_ = _relax(field.type)
    return field if type_ is field.type else field.with_type(type_)


def _relax(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        inner = [relax_structs(each).with_nullable(True) for each in type_]
        same = all(each.equals(old, check_metadata=True) for each, old in zip(inner, type_, strict=True))
        return type_ if same else pa.struct(inner)
    if pa.types.is_list(type_):
        item = relax_structs(type_.value_field)
        return type_ if item.type.equals(type_.value_type) else pa.list_(item)
    if pa.types.is_map(type_):
        value = relax_structs(type_.item_field)
        return type_ if value.type.equals(type_.item_type) else pa.map_(type_.key_field, value)
    return type_


def make_nullable(fields: Iterable[pa.Field]) -> pa.Schema:
    """Return a schema of the fields, each made nullable."""
    return pa.schema([field if field.nullable else field.with_nullable(True) for field in fields])
