"""Change a table's columns: the rules of Hudi's ALTER TABLE (``TableChanges``, ``SchemaChangeUtils``).

* A column that is added is nullable and gets a new id; the name of a dropped column may be used for a new one.
* A column that is renamed, moved, retyped or made nullable keeps its id. It never becomes required again.
* Types change where Hudi can read old values in the new type: int to long, float, double, string, decimal, and so on.

Dotted names lead to fields inside structs; ``element`` and ``value`` lead into lists and maps. Columns to drop, rename
or retype are given by their names before the alteration, positions and parents of new columns by the names after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.avro.columns import (
    Column,
    ColumnType,
    Elements,
    Numbers,
    Plain,
    Struct,
    Values,
    name_plain_type,
    number_columns,
)
from hoodie_py.formats.avro.from_arrow import make_column, make_field
from hoodie_py.formats.column_names import check_name, check_siblings
from hoodie_py.formats.names import META_FIELDS, OPERATION_FIELD
from hoodie_py.writer.schema_changes import may_lose

FIRST = "first"
_COMMENT = b"comment"  # Spark's key in a field's metadata

_CASTS: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double", "string", "decimal"}),
    "long": frozenset({"float", "double", "string", "decimal"}),
    "float": frozenset({"double", "string", "decimal"}),
    "double": frozenset({"string", "decimal"}),
    "date": frozenset({"string"}),
    "binary": frozenset({"string"}),
    "decimal": frozenset({"string"}),
    "string": frozenset({"date", "decimal", "binary"}),
}
_DECIMAL = re.compile(r"decimal\w*\((\d+), (\d+)\)")


@dataclass(frozen=True, slots=True)
class Changes:
    """What to change; names as in the module's docstring.

    Attributes:
        add: new columns: their names and types.
        rename: new names, without the names of the structs around them.
        drop: columns to drop.
        cast: new types.
        reorder: positions: ``first``, ``after NAME`` or ``before NAME``, among the columns of the same struct.
        nullable: columns that may be null from now on.
        comment: comments; None removes one.
        allow_loss: whether types may change even if values may lose something (``may_lose``).
    """

    add: Mapping[str, pa.Field] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()
    cast: Mapping[str, pa.DataType] = field(default_factory=dict)
    reorder: Mapping[str, str] = field(default_factory=dict)
    nullable: Sequence[str] = ()
    comment: Mapping[str, str | None] = field(default_factory=dict)
    allow_loss: bool = False


def change_columns(columns: Sequence[Column], changes: Changes, numbers: Numbers) -> tuple[Column, ...]:
    """Return the columns after the changes; meta columns, if any, come first and stay.

    Raises:
        InvalidQueryError: there is no such column, a name or position is wrong, or a change is not allowed.
        UnsupportedFeatureError: schemas with ids do not support a type.
    """
    edits = _find_edits(columns, changes)
    changed = _edit(columns, edits)
    for name, new in changes.add.items():
        if changes.comment.get(name) is not None:
            new = new.with_metadata({**(new.metadata or {}), _COMMENT: str(changes.comment[name])})
        changed = _add(changed, name.split("."), new, numbers, name)
    for name, place in changes.reorder.items():
        changed = _move(changed, name.split("."), place, name)
    _check_names(changed)
    return changed


@dataclass(slots=True)
class _Edit:
    """The changes of one column."""

    drop: bool = False
    name: str | None = None
    type: Any = None
    optional: bool = False
    comments: tuple[str | None, ...] = ()


def _find_edits(columns: Sequence[Column], changes: Changes) -> dict[int | None, _Edit]:
    places = dict(_iterate_places(columns))
    edits: dict[int | None, _Edit] = {}

    def find(name: str, *, named: bool = True) -> tuple[Column, _Edit]:
        check_no_meta_column(name)
        found = places.get(name)
        if found is None:
            raise InvalidQueryError(f"The table has no column {name!r}.", column=name)
        column, is_field = found
        if named and not is_field:
            raise InvalidQueryError(f"{name!r} is inside a list or map, and has no name to change.", column=name)
        return column, edits.setdefault(column.id, _Edit())

    for name in changes.drop:
        find(name)[1].drop = True
    for name, new in changes.rename.items():
        around, _, bare = new.rpartition(".")
        if around and around != name.rpartition(".")[0]:
            raise InvalidQueryError(
                f"{name!r} cannot move to {new!r}.", hint="A column stays in its struct.", column=name
            )
        check_name(bare)
        find(name)[1].name = bare
    for name, type_ in changes.cast.items():
        column, edit = find(name, named=False)
        edit.type = _cast(column, type_, name, allow_loss=changes.allow_loss)
    for name in changes.nullable:
        find(name, named=False)[1].optional = True
    for name, text in changes.comment.items():
        if name not in changes.add:
            find(name)[1].comments = (text,)
    both = [name for name in changes.drop if [edit for edit in [find(name)[1]] if edit != _Edit(drop=True)]]
    if both:
        raise InvalidQueryError(f"The column {both[0]!r} is to be dropped and changed.", column=both[0])
    return edits


def check_no_meta_column(name: str) -> None:
    """Refuse to change a meta column. Raises InvalidQueryError."""
    if name.split(".", maxsplit=1)[0].lower() in (*META_FIELDS, OPERATION_FIELD):
        raise InvalidQueryError(f"The column {name!r} is Hudi's own.", column=name)


def _iterate_places(columns: Sequence[Column], path: str = "") -> Iterator[tuple[str, tuple[Column, bool]]]:
    """Yield name, column and whether it is a field (elements and values are not)."""
    for each in columns:
        place = f"{path}{each.name}"
        yield place, (each, True)
        yield from _iterate_inside(each.type, place)


def _iterate_inside(type_: ColumnType, place: str) -> Iterator[tuple[str, tuple[Column, bool]]]:
    match type_:
        case Struct():
            yield from _iterate_places(type_.columns, f"{place}.")
        case Elements() | Values():
            inner = f"{place}.{'element' if isinstance(type_, Elements) else 'value'}"
            yield inner, (Column(inner.rpartition(".")[2], type_.type, type_.id, type_.optional), False)
            yield from _iterate_inside(type_.type, inner)


def _cast(column: Column, type_: pa.DataType, name: str, *, allow_loss: bool) -> Any:
    """Return the Avro type of a new type, if the column may get it."""
    node = make_field(pa.field(column.name, type_, nullable=False), "hoodie")["type"]
    if not isinstance(column.type, Plain) or pa.types.is_nested(type_):
        raise InvalidQueryError(
            f"The column {name!r} cannot change its type to {type_}: one of them is nested.",
            hint="Cast the fields inside it, or add another column.",
            column=name,
        )
    old, new = column.type.name, name_plain_type(node)
    if old == new:
        return column.type.avro
    short_old, short_new = _shorten(old), _shorten(new)
    if short_old == short_new == "decimal":
        allowed = _is_wider(new, old)
    else:
        allowed = short_new in _CASTS.get(short_old, ())
    if not allowed:
        raise InvalidQueryError(
            f"The column {name!r} cannot change its type from {old} to {new}.",
            hint=f"Allowed from {short_old}: {', '.join(sorted(_CASTS.get(short_old, ()))) or 'nothing'}"
            f"{', wider decimals' if short_old == 'decimal' else ''}.",
            column=name,
        )
    if may_lose(old, new) and not allow_loss:
        raise InvalidQueryError(
            f"Values of the column {name!r} may not survive the change of type from {old} to {new}: they may lose "
            "digits, become text or not fit.",
            hint="Say allow_loss=True if that may be; values that do not fit make reads fail.",
            column=name,
        )
    return node


def _shorten(name: str) -> str:
    return "decimal" if name.startswith("decimal") else name


def _is_wider(new: str, old: str) -> bool:
    found = [_DECIMAL.match(each) for each in (new, old)]
    if None in found:
        return False
    (precision, scale), (old_precision, old_scale) = ((int(each[1]), int(each[2])) for each in found if each)
    return scale >= old_scale and precision - scale >= old_precision - old_scale


def _edit(columns: Sequence[Column], edits: Mapping[int | None, _Edit]) -> tuple[Column, ...]:
    found = []
    for each in columns:
        edit = edits.get(each.id, _Edit())
        if edit.drop:
            continue
        type_ = Plain(edit.type) if edit.type is not None else _edit_type(each.type, edits, each.name)
        doc = edit.comments[0] if edit.comments else each.doc
        optional = each.optional or edit.optional
        found.append(replace(each, name=edit.name or each.name, type=type_, optional=optional, doc=doc))
    return tuple(found)


def _edit_type(type_: ColumnType, edits: Mapping[int | None, _Edit], name: str) -> ColumnType:
    match type_:
        case Struct():
            columns = _edit(type_.columns, edits)
            if not columns:
                raise InvalidQueryError(
                    f"All fields of {name!r} would be dropped.", hint="Drop the column itself.", column=name
                )
            return Struct(columns)
        case Elements() | Values():
            edit = edits.get(type_.id, _Edit())
            inner = Plain(edit.type) if edit.type is not None else _edit_type(type_.type, edits, name)
            return replace(type_, type=inner, optional=type_.optional or edit.optional)
    return type_


def _add(
    columns: Sequence[Column], parts: Sequence[str], new: pa.Field, numbers: Numbers, name: str
) -> tuple[Column, ...]:
    check_no_meta_column(name)

    def put(siblings: Sequence[Column]) -> tuple[Column, ...]:
        if any(each.name == parts[-1] for each in siblings):
            raise InvalidQueryError(f"The table has the column {name!r} already.", column=name)
        if not new.nullable:
            raise InvalidQueryError(
                f"The new column {name!r} cannot be required: rows that are there have no value.", column=name
            )
        top = len(parts) == 1
        doc = (new.metadata or {}).get(_COMMENT)
        [column] = number_columns([make_column(new.with_name(parts[-1]), "hoodie", top=top)], numbers)
        return (*siblings, replace(column, doc=None if doc is None else doc.decode()))

    return _at(columns, parts[:-1], put, name)


def _move(columns: Sequence[Column], parts: Sequence[str], place: str, name: str) -> tuple[Column, ...]:
    check_no_meta_column(name)
    where, _, other = place.strip().partition(" ")
    other = other.strip().rpartition(".")[2]

    def put(siblings: Sequence[Column]) -> tuple[Column, ...]:
        moved = [each for each in siblings if each.name == parts[-1]]
        rest = [each for each in siblings if each.name != parts[-1]]
        if not moved:
            raise InvalidQueryError(f"The table has no column {name!r}.", column=name)
        if where == FIRST and not other:
            # The meta columns stay in front of all others.
            at = sum(each.name in META_FIELDS for each in rest) if len(parts) == 1 else 0
        else:
            known = [each.name for each in rest]
            if where not in ("after", "before") or other not in known or other in META_FIELDS:
                raise InvalidQueryError(
                    f"The place {place!r} of the column {name!r} is none.",
                    hint="Say first, after NAME or before NAME, with a column of the same struct.",
                    column=name,
                )
            at = known.index(other) + (where == "after")
        return (*rest[:at], *moved, *rest[at:])

    return _at(columns, parts[:-1], put, name)


def _at(columns: Sequence[Column], parts: Sequence[str], put: Any, name: str) -> tuple[Column, ...]:
    """Return the columns with one struct changed by ``put``; ``parts`` lead to the struct."""
    if not parts:
        return tuple(put(columns))
    if not any(each.name == parts[0] for each in columns):
        raise InvalidQueryError(f"The table has no column {parts[0]!r}, which {name!r} is in.", column=name)
    return tuple(
        replace(each, type=_at_type(each.type, parts[1:], put, name)) if each.name == parts[0] else each
        for each in columns
    )


def _at_type(type_: ColumnType, parts: Sequence[str], put: Any, name: str) -> ColumnType:
    match type_:
        case Struct():
            return Struct(_at(type_.columns, parts, put, name))
        case Elements() if parts[:1] == ["element"]:
            return replace(type_, type=_at_type(type_.type, parts[1:], put, name))
        case Values() if parts[:1] == ["value"]:
            return replace(type_, type=_at_type(type_.type, parts[1:], put, name))
    raise InvalidQueryError(f"{name!r} is not inside a struct.", column=name)


def _check_names(columns: Sequence[Column]) -> None:
    check_siblings(each.name for each in columns)
    for each in columns:
        type_ = each.type
        while isinstance(type_, Elements | Values):
            type_ = type_.type
        if isinstance(type_, Struct):
            _check_names(type_.columns)
