"""The rules that every RecordContext shares: nested fields, keys, ordering values, deletes and schema ids.

They agree with Hudi's RecordContext. A subclass adds only how it reads a field of its kind of row and how it makes a
changed row, so a merger gets the same answers on every kind of row.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from hoodie_py.arrow.fields import find_field_type, find_top_level_name, has_field
from hoodie_py.errors import HoodieError, MergeError
from hoodie_py.formats.names import IS_DELETED_FIELD, OPERATION_FIELD, RECORD_KEY_FIELD
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record import DEFAULT_ORDERING, BufferedRecord, HoodieOperation, RecordContext
from hoodie_py.reader.record.record_key import RecordKeys

T = TypeVar("T")


class TableRecordContext(RecordContext[T]):
    """The rules of one table over one kind of row.

    ``schema``: the columns that this read loaded. ``table_schema``: all columns, to distinguish "not loaded" from "does
    not exist". ``identity``: fields that a merge must not change.
    """

    def __init__(
        self,
        schema: pa.Schema,
        table_schema: pa.Schema,
        keys: RecordKeys,
        ordering_fields: Sequence[str],
        deletes: DeleteRules,
        identity: Sequence[str] = (),
    ) -> None:
        self.schema = schema
        self.identity = tuple(identity)
        self.keys = keys
        self.ordering_fields = tuple(ordering_fields)
        self.ordering_types = tuple(find_field_type(schema, name) for name in self.ordering_fields)
        self.deletes = deletes
        self._columns = frozenset(schema.names)
        self._table_columns = frozenset(table_schema.names)
        self._places: dict[str, tuple[str | None, tuple[str, ...]]] = {}
        self._schemas: list[pa.Schema] = []
        self._key_columns = frozenset(find_top_level_name(schema, name) for name in keys.columns)
        self._ordering_columns = frozenset(find_top_level_name(schema, name) for name in self.ordering_fields)
        self.schema_id = self.encode_schema(schema)

    @abstractmethod
    def _as_row(self, row: T | Mapping[str, Any]) -> T:
        """Return bare data as a row of this context; a mapping of values becomes a new row.

        Raises:
            MergeError: the table does not have a column, or this read did not load it.
        """

    @abstractmethod
    def _read_cell(self, row: T, name: str) -> Any:
        """Return the value of a loaded column; None where the row lacks it."""

    @abstractmethod
    def _has_column(self, row: T, name: str) -> bool:
        """Say whether the row has a loaded column."""

    @abstractmethod
    def _change_row(self, row: T, values: Mapping[str, Any]) -> T:
        """Return a row with other values in some columns."""

    @abstractmethod
    def _make_row(self, values: Mapping[str, Any]) -> T:
        """Return a new row with only these columns."""

    def get_value(self, rec: BufferedRecord[T] | T | Mapping[str, Any] | None, field: str) -> Any:
        row = self._find_row(rec)
        name, path = self._locate_field(field)
        if name is None:
            raise make_unknown_column_error(field)
        if row is None:
            return None
        value = self._read_cell(row, name)
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return copy.deepcopy(value) if isinstance(value, (dict, list)) else value

    def has_value(self, rec: BufferedRecord[T] | T | Mapping[str, Any] | None, field: str) -> bool:
        row = self._find_row(rec)
        name = self._locate_field(field)[0]
        return row is not None and name is not None and self._has_column(row, name)

    def ordering_value(self, rec: BufferedRecord[T] | T | Mapping[str, Any] | None) -> Any:
        if rec is None or not self.ordering_fields:
            return DEFAULT_ORDERING
        if isinstance(rec, BufferedRecord) and rec.record is None:
            return rec.ordering_value
        read = (self._read_field(rec, name) for name in self.ordering_fields)
        parts = tuple(DEFAULT_ORDERING if part is None else part for part in read)
        if len(parts) > 1:
            has_zero = map(self._has_zero_default, range(len(parts)))
            return tuple(
                0 if part is DEFAULT_ORDERING and zero else part for part, zero in zip(parts, has_zero, strict=True)
            )
        if parts[0] in (0, DEFAULT_ORDERING) and self._has_zero_default(0):
            deleted = rec.is_delete if isinstance(rec, BufferedRecord) else self.is_delete(rec)
            return DEFAULT_ORDERING if deleted else 0
        return parts[0]

    def record_key(self, rec: BufferedRecord[T] | T | Mapping[str, Any]) -> str:
        if isinstance(rec, BufferedRecord):
            return rec.record_key
        return self.keys.make_key({name: self.get_value(rec, name) for name in self.keys.columns}, self.schema)

    def is_delete(self, rec: BufferedRecord[T] | T | Mapping[str, Any]) -> bool:
        if isinstance(rec, BufferedRecord):
            if rec.is_delete or rec.record is None:
                return rec.is_delete
            rec = rec.record
        operation = self._read_operation(rec)
        return operation in (HoodieOperation.DELETE, HoodieOperation.UPDATE_BEFORE) or self._is_marked(rec)

    def buffered(self, row: T | Mapping[str, Any], operation: HoodieOperation | None = None) -> BufferedRecord[T]:
        row = self._as_row(row)
        said = self._read_operation(row) if operation is None else operation
        if said is not HoodieOperation.UPDATE_BEFORE and self.is_delete(row):
            said = HoodieOperation.DELETE
        present = [name for name in self.schema.names if self._has_column(row, name)]
        draft = BufferedRecord(self._find_key(row), DEFAULT_ORDERING, row, self._encode_columns(present), said)
        return replace(draft, ordering_value=self.ordering_value(draft))

    def replace(self, rec: BufferedRecord[T], /, **values: Any) -> BufferedRecord[T]:
        if rec.record is None:
            built = self.construct(rec.record_key, values)
            row, schema_id = built.record, built.schema_id
        else:
            self._check_columns(values, rec.record_key)
            row = self._change_row(rec.record, copy_values(values))
            schema_id = self._extend_schema(rec.schema_id, values)
            if not self._key_columns.isdisjoint(values):
                self._check_key(rec.record_key, row)
        changed = BufferedRecord(rec.record_key, rec.ordering_value, row, schema_id, rec.operation)
        if self._ordering_columns.isdisjoint(values):
            return changed
        return replace(changed, ordering_value=self.ordering_value(changed))

    def delete(self, rec: BufferedRecord[T]) -> BufferedRecord[T]:
        ordering = rec.ordering_value
        if ordering == 0 and len(self.ordering_fields) == 1 and self._has_zero_default(0):
            ordering = DEFAULT_ORDERING
        return BufferedRecord(rec.record_key, ordering, rec.record, rec.schema_id, HoodieOperation.DELETE)

    def construct(
        self, record_key: str, values: Mapping[str, Any], schema: pa.Schema | None = None
    ) -> BufferedRecord[T]:
        names = self.schema.names if schema is None else schema.names
        self._check_columns([*names, *values], record_key)
        outside = sorted(set(values) - set(names))
        if outside:
            raise MergeError(
                f"A merger built a record with fields outside its schema: {', '.join(outside)}.", key=record_key
            )
        given = {name: values.get(name) for name in names}
        given |= {k: v for k, v in self.keys.find_key_values(record_key, self.schema).items() if given.get(k) is None}
        row = self._make_row(copy_values(given))
        self._check_key(record_key, row)
        draft = BufferedRecord(record_key, DEFAULT_ORDERING, row, self._encode_columns(given))
        return replace(draft, ordering_value=self.ordering_value(draft))

    def project(
        self, rec: BufferedRecord[T], schema: pa.Schema, renames: Mapping[str, str] | None = None
    ) -> BufferedRecord[T]:
        if rec.record is None:
            return rec
        self._check_columns(schema.names, rec.record_key)
        sources = {name: (renames or {}).get(name, name) for name in schema.names}
        values = {n: self.get_value(rec, source) for n, source in sources.items() if self.has_value(rec, source)}
        fields = [schema.field(name) for name in values]
        kept = self.encode_schema(schema if len(fields) == len(schema) else pa.schema(fields))
        return replace(rec, record=self._make_row(copy_values(values)), schema_id=kept)

    def encode_schema(self, schema: pa.Schema) -> int:
        for number, known in enumerate(self._schemas):
            if known.equals(schema):
                return number
        self._schemas.append(schema)
        return len(self._schemas) - 1

    def decode_schema(self, schema_id: int | None) -> pa.Schema | None:
        return self._schemas[schema_id] if schema_id is not None and 0 <= schema_id < len(self._schemas) else None

    def _locate_field(self, field: str) -> tuple[str | None, tuple[str, ...]]:
        """Find a field: its loaded column and the path inside the column; (None, ()) if the table does not have it.

        Raises:
            MergeError: the table has the column, but this read did not load it.
        """
        place = self._places.get(field)
        if place is None:
            place = self._places[field] = self._resolve_field(field)
        return place

    def _resolve_field(self, field: str) -> tuple[str | None, tuple[str, ...]]:
        if field in self._columns:
            return field, ()
        name, *path = field.split(".")
        if name in self._columns:
            return (name, tuple(path)) if has_field(self.schema, field) else (None, ())
        if name in self._table_columns or field in self._table_columns:
            raise make_unread_column_error(name)
        return None, ()

    def check_loaded(self, name: str) -> None:
        """Check that this read loaded a column.

        Raises:
            MergeError: it did not load it, or the table does not have the column; the message says which.
        """
        if name not in self._columns:
            raise make_unread_column_error(name) if name in self._table_columns else make_unknown_column_error(name)

    def _find_row(self, rec: BufferedRecord[T] | T | Mapping[str, Any] | None) -> T | None:
        """Return a record's data, or bare data as a row; None without data."""
        if isinstance(rec, BufferedRecord):
            return rec.record
        return None if rec is None else self._as_row(rec)

    def _find_key(self, row: T) -> str:
        """Return the key of a bare row.

        Raises:
            MergeError: the row has no key.
        """
        lacking = [name for name in self.keys.columns if self.get_value(row, name) is None]
        if len(lacking) == len(self.keys.columns):
            raise MergeError("A merger built a record without its key.", hint=f"Give {', '.join(lacking)}.")
        return self.record_key(row)

    def _check_columns(self, names: Iterable[str], key: str) -> None:
        for name in names:
            if name not in self._columns and (self._locate_field(name) != (name, ())):
                raise MergeError("A merger set a column that the table does not have.", column=name, key=key)

    def _check_key(self, key: str, row: T) -> None:
        """Raise MergeError where a changed or new row has another key than its record."""
        if not all(self._has_column(row, name) for name in self._key_columns):
            return
        try:
            found: str | None = self.record_key(row)
        except HoodieError:
            found = None
        if found != key:
            raise MergeError(
                f"A merger made a row whose key is {found!r}.",
                key=key,
                hint=f"Do not change the record key ({', '.join(self.keys.columns)}).",
            )

    def _encode_columns(self, names: Iterable[str]) -> int:
        """Return the id of the reader's schema with only these columns."""
        present = set(names)
        if present >= self._columns:
            return self.schema_id
        return self.encode_schema(pa.schema([field for field in self.schema if field.name in present]))

    def _extend_schema(self, schema_id: int | None, names: Iterable[str]) -> int:
        """Return the id of a record's schema with these columns added."""
        if schema_id is None or schema_id == self.schema_id:
            return self.schema_id
        known = self.decode_schema(schema_id)
        return self._encode_columns([*(self.schema.names if known is None else known.names), *names])

    def _read_field(self, rec: BufferedRecord[T] | T | Mapping[str, Any], name: str) -> Any:
        """Return a record's value of a field; None if the table lacks the field."""
        return None if self._locate_field(name)[0] is None else self.get_value(rec, name)

    def _read_operation(self, row: T | Mapping[str, Any]) -> HoodieOperation | None:
        text = self.get_value(row, OPERATION_FIELD) if self.deletes.operation else None
        try:
            return None if text is None else HoodieOperation(text)
        except ValueError as error:
            raise MergeError(
                f"Unknown record operation {text!r}.", hint="Expected one of I, -U, U, D.", column=OPERATION_FIELD
            ) from error

    def _is_marked(self, row: T | Mapping[str, Any]) -> bool:
        if self.deletes.flag and self.get_value(row, IS_DELETED_FIELD) is True:
            return True
        field = self.deletes.marker_field
        value = None if field is None else self._read_field(row, field)
        if value is None:
            return False
        type_ = find_field_type(self.schema, str(field))
        return bool(pa.scalar(value, type_).cast(pa.string()).as_py() == self.deletes.marker)

    def _has_zero_default(self, index: int) -> bool:
        """Say whether 0 is the default of an ordering field, as in int columns: Hudi's default is the int 0."""
        type_ = self.ordering_types[index]
        return type_ is not None and bool(pa.types.is_int32(type_))


class MappingRecordContext(TableRecordContext[dict[str, Any]]):
    """Access to rows that are dicts of Python values by column name, for tests of mergers and for tools.

    A column that a dict lacks is absent, not null. By default keys come from the meta column ``_hoodie_record_key``.
    ``table_schema``: all columns of the table, if rows hold only some of them.

    Examples:
        >>> context = MappingRecordContext(pa.schema([("_hoodie_record_key", pa.string()), ("price", pa.float64())]))
        >>> record = context.construct("a", {"price": 2.0})
        >>> context.get_value(context.replace(record, price=3.0), "price")
        3.0
    """

    def __init__(
        self,
        schema: pa.Schema,
        keys: RecordKeys | None = None,
        ordering_fields: Sequence[str] = (),
        deletes: DeleteRules | None = None,
        table_schema: pa.Schema | None = None,
    ) -> None:
        rules = RecordKeys.of(populate_meta_fields=True, record_key_fields=()) if keys is None else keys
        whole = schema if table_schema is None else table_schema
        super().__init__(schema, whole, rules, ordering_fields, deletes or DeleteRules())

    def _as_row(self, row: dict[str, Any] | Mapping[str, Any]) -> dict[str, Any]:
        return row if isinstance(row, dict) else dict(row)

    def buffered(
        self, row: dict[str, Any] | Mapping[str, Any], operation: HoodieOperation | None = None
    ) -> BufferedRecord[dict[str, Any]]:
        self._check_columns(row, str(row.get(RECORD_KEY_FIELD)))
        return super().buffered(row, operation)

    def _read_cell(self, row: dict[str, Any], name: str) -> Any:
        return row.get(name)

    def _has_column(self, row: dict[str, Any], name: str) -> bool:
        return name in row

    def _change_row(self, row: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, **self._make_row(values)}

    def _make_row(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: make_fitting_array([value], self.schema.field(name))[0].as_py() for name, value in values.items()}


def make_unread_column_error(name: str) -> MergeError:
    """Make the error for a merger that reads a column it did not declare."""
    return MergeError(
        "A merger asked for a column that this read did not load.",
        column=name,
        hint="Return it from the merger's mandatory_fields, or set projection_compatible = False.",
    )


def make_unknown_column_error(name: str) -> MergeError:
    """Make the error for a merger that reads a column that the table does not have."""
    return MergeError(
        "A merger asked for a column that the table does not have.",
        column=name,
        hint="Names are case-sensitive. Of a column that only some tables have, ask context.has_value first.",
    )


def copy_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copy lists and dicts, so that a merger cannot change stored values."""
    return {name: copy.deepcopy(v) if isinstance(v, (dict, list)) else v for name, v in values.items()}


def make_fitting_array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Return Python values as an array of a column's type.

    Raises:
        MergeError: a value does not fit.
    """
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise MergeError(f"A merged value does not fit its column: {error}", column=field.name) from error
