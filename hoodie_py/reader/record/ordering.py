"""Ordering values as columns, compared as Java compares them.

Rules (Hudi's OrderingValues and BufferedRecordMergerFactory):

* The default ordering value is the int 0. A null ordering field reads as the default. In an int column a stored 0 is
  therefore the default, too, and a null compares as 0. In every other column the default has another class than the
  values.
* Values of different classes do not compare. Only delete blocks can have values of another class than the column's
  (``ForeignValue``).
* Floats compare as in Java's Double.compareTo (NaN is the greatest, -0.0 is less than 0.0), strings by their UTF-8
  bytes, decimals by value.
* Several ordering fields compare one by one. A null part is the default of that part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, from_numpy, is_valid, take, to_booleans, to_numbers
from hoodie_py.reader.record.record import DEFAULT_ORDERING

Mask = np.ndarray


@dataclass(frozen=True, slots=True)
class ForeignValue:
    """An ordering value of a delete block whose class differs from the column's."""

    kind: str
    value: Any

    def __str__(self) -> str:
        return f"{self.kind} {self.value!r}"


@dataclass(frozen=True, slots=True)
class _Part:
    """The values of one ordering field: an array of the field's type, null for entries that are default or foreign."""

    values: pa.Array
    default: Mask

    @property
    def integer(self) -> bool:
        """Whether the default is an ordinary value (0) of this part."""
        return bool(pa.types.is_int32(self.values.type))


class OrderingColumn:
    """The ordering values of a run of records.

    Attributes:
        parts: one per ordering field; none where the merge mode reads no ordering.
        default: a bool per entry: whether the whole value is the default (with several fields only for deletes).
        foreign: a ForeignValue or None per entry; None if no entry is foreign.
    """

    __slots__ = ("default", "foreign", "length", "parts")

    def __init__(self, parts: tuple[_Part, ...], default: Mask, foreign: np.ndarray | None) -> None:
        self.parts = parts
        self.default = default
        self.foreign = foreign if foreign is not None and any(f is not None for f in foreign) else None
        self.length = len(default)

    def __len__(self) -> int:
        return self.length

    @classmethod
    def from_columns(cls, columns: Sequence[pa.Array], length: int) -> OrderingColumn:
        """Make a column of the ordering fields' values in rows; a null becomes the default."""
        parts = tuple(_make_part(column) for column in columns)
        if len(parts) == 1:
            return cls(parts, parts[0].default, None)
        return cls(parts, np.full(length, not parts), None)

    @classmethod
    def of_deletes(cls, columns: Sequence[pa.Array], length: int) -> OrderingColumn:
        """Make a column of the ordering values of deletes.

        If all fields of a delete are null, its whole value is the default.
        """
        order = cls.from_columns(columns, length)
        missing = np.full(length, True)
        for column in columns:
            missing &= ~is_valid(column)
        return cls(order.parts, order.default | missing, None)

    @classmethod
    def from_values(cls, values: Sequence[Any], types: Sequence[pa.DataType]) -> OrderingColumn:
        """Make a column of Python values.

        Each is a value, a tuple for several fields, a ForeignValue, None or DEFAULT_ORDERING.
        """
        foreign = np.array([v if isinstance(v, ForeignValue) else None for v in values], dtype=object)
        plain = [None if isinstance(v, ForeignValue) or v is DEFAULT_ORDERING else v for v in values]
        if len(types) == 1:
            part = _make_part(pa.array(plain, types[0]))
            has_foreign = np.array([f is not None for f in foreign], bool)
            part = _Part(part.values, part.default & ~has_foreign)  # a foreign value is null in Arrow, but no default
            return cls((part,), part.default, foreign)
        whole = np.array([v is None for v in plain], bool) & np.array([f is None for f in foreign], bool)
        pieces = []
        for i, type_ in enumerate(types):
            texts = [None if v is None or v[i] is DEFAULT_ORDERING else v[i] for v in plain]
            pieces.append(_make_part(pa.array(texts, type_)))
        return cls(tuple(pieces), whole if types else np.full(len(values), True), foreign)

    def take(self, indices: np.ndarray) -> OrderingColumn:
        """Return the entries at the indices."""
        at = from_numpy(indices.astype(np.int64, copy=False))
        parts = tuple(_Part(take(p.values, at), p.default[indices]) for p in self.parts)
        return OrderingColumn(parts, self.default[indices], None if self.foreign is None else self.foreign[indices])

    def slice(self, start: int, stop: int) -> OrderingColumn:
        """Return the entries from one index up to another, without a copy."""
        parts = tuple(_Part(p.values.slice(start, stop - start), p.default[start:stop]) for p in self.parts)
        return OrderingColumn(
            parts, self.default[start:stop], None if self.foreign is None else self.foreign[start:stop]
        )

    def where(self, mask: Mask, other: OrderingColumn) -> OrderingColumn:
        """Return this column's entries where the mask is true, the other column's elsewhere."""
        arrow_mask = from_numpy(np.asarray(mask, bool))
        parts = tuple(
            _Part(call("if_else", arrow_mask, mine.values, theirs.values), np.where(mask, mine.default, theirs.default))
            for mine, theirs in zip(self.parts, other.parts, strict=True)
        )
        foreign = None
        if self.foreign is not None or other.foreign is not None:
            foreign = np.where(mask, _list_foreign(self), _list_foreign(other))
        return OrderingColumn(parts, np.where(mask, self.default, other.default), foreign)

    @classmethod
    def concat(cls, columns: Sequence[OrderingColumn]) -> OrderingColumn:
        """Join columns of the same ordering fields end to end."""
        if len(columns) == 1:
            return columns[0]
        parts = tuple(
            _Part(pa.concat_arrays([p.values for p in same]), np.concatenate([p.default for p in same]))
            for same in zip(*(c.parts for c in columns), strict=True)
        )
        foreign = None
        if any(c.foreign is not None for c in columns):
            foreign = np.concatenate([_list_foreign(c) for c in columns])
        return cls(parts, np.concatenate([c.default for c in columns]), foreign)

    def to_stored_columns(self) -> dict[str, pa.Array]:
        """Return the entries, without foreign values, as Arrow columns for a spill file."""
        columns = {"default": _mask_to_bytes(self.default)}
        for i, part in enumerate(self.parts):
            columns[f"values{i}"], columns[f"default{i}"] = part.values, _mask_to_bytes(part.default)
        return columns

    @classmethod
    def from_stored_columns(cls, columns: Mapping[str, pa.Array], foreign: np.ndarray | None) -> OrderingColumn:
        """Make a column from the result of ``to_stored_columns`` and the foreign values, without a copy."""
        count = sum(name.startswith("values") for name in columns)
        parts = tuple(_Part(columns[f"values{i}"], _bytes_to_mask(columns[f"default{i}"])) for i in range(count))
        return cls(parts, _bytes_to_mask(columns["default"]), foreign)

    @property
    def nbytes(self) -> int:
        """Bytes of the values, without foreign values."""
        return int(self.default.nbytes + sum(part.values.nbytes + part.default.nbytes for part in self.parts))

    def get_value(self, index: int) -> Any:
        """Return one entry as a Python value: DEFAULT_ORDERING for the default; in a tuple an int field keeps its 0."""
        if self.foreign is not None and self.foreign[index] is not None:
            return self.foreign[index]
        if self.default[index]:
            return DEFAULT_ORDERING
        values = tuple(
            DEFAULT_ORDERING if p.default[index] and not p.integer else p.values[index].as_py() for p in self.parts
        )
        return values[0] if len(values) == 1 else values

    def to_pylist(self) -> list[Any]:
        """Return every entry as ``get_value`` does."""
        columns = [p.values.to_pylist() for p in self.parts]
        rows: list[Any] = []
        for i in range(self.length):
            if self.foreign is not None and self.foreign[i] is not None:
                rows.append(self.foreign[i])
            elif self.default[i]:
                rows.append(DEFAULT_ORDERING)
            elif len(columns) == 1:
                rows.append(columns[0][i])
            else:
                rows.append(
                    tuple(
                        DEFAULT_ORDERING if p.default[i] and not p.integer else c[i]
                        for p, c in zip(self.parts, columns, strict=True)
                    )
                )
        return rows

    def to_arrow(self) -> pa.Array:
        """Return an array of the field's type, a struct for several fields; null for default and foreign values."""
        if not self.parts:
            return pa.nulls(self.length)
        if len(self.parts) == 1:
            part = self.parts[0]
            return call("if_else", pa.array(part.default), pa.scalar(None, part.values.type), part.values)
        return pa.StructArray.from_arrays(
            [p.values for p in self.parts], [f"f{i}" for i in range(len(self.parts))], mask=pa.array(self.default)
        )


def compare(older: OrderingColumn, newer: OrderingColumn) -> tuple[np.ndarray, Mask]:
    """Compare two columns entry by entry; with several fields the first difference decides.

    Returns:
        (sign, mixed): ``sign`` is negative, zero or positive where older is less than, equal to or greater than newer.
        ``mixed`` marks entries that do not compare, because their classes differ; there ``sign`` has no meaning.
    """
    if len(older.parts) == 1:
        sign, mixed = _compare_parts(older.parts[0], newer.parts[0])
    else:
        sign, mixed = _compare_each(older, newer)
    if older.foreign is not None or newer.foreign is not None:
        _compare_foreign(_list_foreign(older), _list_foreign(newer), sign, mixed)
    return sign, mixed


def _compare_each(older: OrderingColumn, newer: OrderingColumn) -> tuple[np.ndarray, Mask]:
    sign = np.zeros(len(older), np.int8)
    mixed = np.zeros(len(older), bool)
    for mine, theirs in zip(older.parts, newer.parts, strict=True):
        part_sign, part_mixed = _compare_parts(mine, theirs)
        mixed |= part_mixed & (sign == 0)
        sign = np.where(sign == 0, part_sign, sign)
    both = older.default & newer.default
    return np.where(both, 0, sign), np.where(both, False, mixed | (older.default != newer.default))


def classes_differ(older: OrderingColumn, newer: OrderingColumn) -> Mask:
    """Return for each pair whether the classes of the values differ; with several fields, of any part."""
    differ = np.zeros(len(older), bool)
    for mine, theirs in zip(older.parts, newer.parts, strict=True):
        if not mine.integer:
            differ |= mine.default != theirs.default
    if len(older.parts) > 1:
        differ = np.where(older.default & newer.default, False, differ | (older.default != newer.default))
    if older.foreign is not None or newer.foreign is not None:
        _compare_foreign(_list_foreign(older), _list_foreign(newer), np.zeros(len(older), np.int8), differ)
    return np.asarray(differ)


def make_sort_codes(column: OrderingColumn) -> np.ndarray | None:
    """Return int64 codes that sort as the entries do; None if some entries do not compare."""
    if column.foreign is not None:
        return None
    if not column.parts:
        return np.zeros(len(column), np.int64)
    if any(not p.integer and p.default.any() for p in column.parts) or (len(column.parts) > 1 and column.default.any()):
        return None
    codes = [_encode_values(p.values) for p in column.parts]
    if len(codes) == 1:
        return codes[0]
    order = np.lexsort(codes[::-1])  # lexsort takes the first field last
    changed = np.zeros(len(column), bool)
    for code in codes:
        changed[1:] |= code[order][1:] != code[order][:-1]
    ranks = np.empty(len(column), np.int64)
    ranks[order] = np.cumsum(changed)
    return ranks


def _make_part(column: pa.Array) -> _Part:
    null = ~is_valid(column)
    if pa.types.is_int32(column.type):
        filled = to_numbers(column)
        return _Part(from_numpy(filled) if null.any() else column, filled == 0)
    return _Part(column, null)


def _mask_to_bytes(mask: Mask) -> pa.Array:
    """Return a mask as bytes: Arrow packs booleans into bits, which NumPy cannot view without a copy."""
    return pa.array(mask.view(np.uint8))


def _bytes_to_mask(column: pa.Array) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False)).view(bool)


def _list_foreign(column: OrderingColumn) -> np.ndarray:
    return column.foreign if column.foreign is not None else np.full(len(column), None, dtype=object)


def _encode_values(values: pa.Array) -> np.ndarray:
    """Return int64 codes that sort as the values do. Codes of texts and decimals are ranks within this array."""
    natural = _encode_numbers(values)
    if natural is not None:
        return natural
    encoded = call("dictionary_encode", values)
    order = to_numbers(call("array_sort_indices", encoded.dictionary))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return np.asarray(rank[to_numbers(encoded.indices)]) if len(order) else np.zeros(len(values), np.int64)


def _encode_numbers(values: pa.Array) -> np.ndarray | None:
    """Return int64 codes that compare across arrays: the number itself, for floats the bits; None for other types."""
    type_ = values.type
    if pa.types.is_integer(type_):
        return to_numbers(values).astype(np.int64)
    if pa.types.is_date32(type_):
        return to_numbers(values.view(pa.int32())).astype(np.int64)
    if pa.types.is_timestamp(type_):
        return to_numbers(values.view(pa.int64()))
    if pa.types.is_boolean(type_):
        return to_booleans(values).astype(np.int64)
    if pa.types.is_floating(type_):
        floats = to_numbers(values).astype(np.float64)
        # The bits of positive floats rise with the value; those of negative floats fall, so they are flipped. One NaN
        # replaces all NaNs: as in Java it is the greatest value.
        bits = np.where(np.isnan(floats), np.float64("nan"), floats).view(np.int64)
        return np.asarray(np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits))
    return None


def _compare_parts(older: _Part, newer: _Part) -> tuple[np.ndarray, Mask]:
    mine, theirs = _encode_numbers(older.values), _encode_numbers(newer.values)
    if mine is not None and theirs is not None:
        sign = (mine > theirs).astype(np.int8) - (mine < theirs).astype(np.int8)
    else:
        above = to_booleans(call("greater", older.values, newer.values))
        below = to_booleans(call("less", older.values, newer.values))
        sign = above.astype(np.int8) - below.astype(np.int8)
    if older.integer:
        return sign, np.zeros(len(sign), bool)
    return np.where(older.default & newer.default, 0, sign), older.default != newer.default


def _compare_foreign(older: np.ndarray, newer: np.ndarray, sign: np.ndarray, mixed: Mask) -> None:
    """Compare the few pairs with a foreign value, in place; it compares only with a foreign value of the same class."""
    for i in np.flatnonzero([a is not None or b is not None for a, b in zip(older, newer, strict=True)]):
        a, b = older[i], newer[i]
        mixed[i] = a is None or b is None or a.kind != b.kind
        if not mixed[i]:
            sign[i] = (a.value > b.value) - (a.value < b.value)
