"""Sample versions for tests of a merger: live rows, deletes with and without data, all kinds of ordering values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.fields import find_field_type
from hoodie_py.formats.names import IS_DELETED_FIELD, OPERATION_FIELD, RECORD_KEY_FIELD
from hoodie_py.reader.record.record import DEFAULT_ORDERING, BufferedRecord, HoodieOperation
from hoodie_py.reader.record.table_context import TableRecordContext

LEVELS = ("low", "middle", "high")
_ROWS = 4
_DAY = datetime.date(2026, 1, 31)
_MOMENT = datetime.datetime(2026, 1, 31, 12, 30, 15, 250)  # noqa: DTZ001 - the zone is the column's


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One version of a record, not yet bound to a record context."""

    values: Mapping[str, Any] | None  # by field name; None for a delete without data
    ordering: Any = DEFAULT_ORDERING  # of a delete without data
    deleted: bool = False

    def make_record(self, context: TableRecordContext[Any], key: str) -> BufferedRecord[Any]:
        """Make a record of a context; columns without a value are absent."""
        if self.values is None:
            return context.delete(BufferedRecord.of_delete(key, self.ordering))
        values = {name: value for name, value in self.values.items() if name in context.schema.names}
        fields = [field for field in context.schema if field.name in values or field.name == RECORD_KEY_FIELD]
        made = context.construct(key, values, pa.schema(fields))
        operation = HoodieOperation.DELETE if self.deleted else None
        made = replace(made, operation=operation)
        return replace(made, ordering_value=context.ordering_value(made))


class Samples:
    """Sample versions for the tests of one merger, made from the given rows or from the schema's types."""

    def __init__(self, schema: pa.Schema, ordering_fields: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
        self._schema = schema
        self._fields = tuple(ordering_fields)
        self._rows = [dict(row) for row in rows] or _make_rows(schema)

    def make_live(self, level: str | None) -> list[Version]:
        """Make live rows at an ordering level; with None the ordering fields are null."""
        return [Version(self._mark_deleted(self._set_ordering(row, level), deleted=False)) for row in self._rows]

    def make_data_deletes(self, level: str | None) -> list[Version]:
        """Make deletes with data at an ordering level."""
        return [
            Version(self._mark_deleted(self._set_ordering(row, level), deleted=True), deleted=True)
            for row in self._rows
        ]

    def make_bare_deletes(self, level: str | None) -> list[Version]:
        """Make deletes without data at an ordering level; with None they are ordered by commit time."""
        if level is None or not self._fields:
            return [Version(None, DEFAULT_ORDERING, deleted=True)]
        values = tuple(self._choose_ordering_value(field, level) for field in self._fields)
        return [Version(None, values[0] if len(values) == 1 else values, deleted=True)]

    def make_all(self) -> list[Version]:
        """Make every kind of version at every level."""
        kinds = (self.make_live, self.make_data_deletes, self.make_bare_deletes)
        return [version for kind in kinds for level in (*LEVELS, None) for version in kind(level)]

    def make_partial(self) -> list[Version]:
        """Make versions, some of which lack columns, like the rows of partial updates."""
        kept = {RECORD_KEY_FIELD, *(name.split(".")[0] for name in self._fields), IS_DELETED_FIELD, OPERATION_FIELD}
        found = [
            *self.make_live("low"),
            *self.make_live("high"),
            *self.make_bare_deletes("middle"),
            *self.make_bare_deletes(None),
        ]
        for version in self.make_live("middle"):
            values = dict(version.values or {})
            for odd in (0, 1):
                names = [n for i, n in enumerate(values) if n in kept or i % 2 == odd]
                found.append(Version({name: values[name] for name in names}))
        return found

    def _set_ordering(self, row: Mapping[str, Any], level: str | None) -> dict[str, Any]:
        values = dict(row)
        for field in self._fields:
            _set_value(values, field.split("."), None if level is None else self._choose_ordering_value(field, level))
        return values

    def _choose_ordering_value(self, field: str, level: str) -> Any:
        type_ = find_field_type(self._schema, field)
        values = sorted(value for value in _list_values(type_) if value is not None)
        return values[min(LEVELS.index(level), len(values) - 1)]

    def _mark_deleted(self, values: dict[str, Any], *, deleted: bool) -> dict[str, Any]:
        if IS_DELETED_FIELD in self._schema.names:
            values[IS_DELETED_FIELD] = deleted
        if OPERATION_FIELD in self._schema.names:
            values[OPERATION_FIELD] = "D" if deleted else None
        return {name: values.get(name) for name in self._schema.names if name != RECORD_KEY_FIELD}


def _set_value(values: dict[str, Any], path: Sequence[str], value: Any) -> None:
    if len(path) == 1:
        values[path[0]] = value
        return
    inner = dict(values.get(path[0]) or {})
    _set_value(inner, path[1:], value)
    values[path[0]] = inner


def _make_rows(schema: pa.Schema) -> list[dict[str, Any]]:
    """Make rows of a few values per column; in one row all values are null."""
    columns = {field.name: _list_values(field.type) for field in schema}
    rows = [{name: values[(i + 1) % len(values)] for name, values in columns.items()} for i in range(_ROWS - 1)]
    return [*rows, dict.fromkeys(columns)]


def _list_values(type_: pa.DataType | None) -> list[Any]:
    """List a few values of a type, including null."""
    if type_ is None:
        return [None]
    if pa.types.is_boolean(type_):
        return [None, False, True]
    if pa.types.is_integer(type_):
        return [None, 0, 7, 101]
    if pa.types.is_floating(type_):
        return [None, -1.5, 0.0, 250.25]
    if pa.types.is_decimal(type_):
        unit = Decimal(1).scaleb(-type_.scale)
        return [None, -unit, unit, unit * 5]
    if pa.types.is_date(type_):
        return [None, *(_DAY + datetime.timedelta(days=n) for n in range(3))]
    if pa.types.is_timestamp(type_):
        zone = datetime.UTC if type_.tz else None
        return [None, *(_MOMENT.replace(tzinfo=zone) + datetime.timedelta(hours=n) for n in range(3))]
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return [None, b"", b"a", b"b"]
    return _list_nested_values(type_)


def _list_nested_values(type_: pa.DataType) -> list[Any]:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [None, [], _list_values(type_.value_type)[1:3]]
    if pa.types.is_map(type_):
        return [None, [], list(zip(_list_values(type_.key_type)[1:], _list_values(type_.item_type)[1:], strict=False))]
    if pa.types.is_struct(type_):
        kinds = {field.name: _list_values(field.type) for field in type_}
        return [None, *({name: values[i % len(values)] for name, values in kinds.items()} for i in range(2))]
    return [None, "", "a", "b"]
