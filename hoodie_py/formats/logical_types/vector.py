"""VECTOR: lists of a fixed length, stored as bytes of a fixed size (HoodieSchema.Vector, VectorConversionUtils).

    stored    Avro fixed with the logical type "vector", Parquet FIXED_LEN_BYTE_ARRAY: the elements, little-endian
    Arrow     list<element: float, double or int8, not null>; the field's metadata contains VECTOR(dimension, element)

Java allows them only as top-level columns. A Parquet file lists its vectors in the footer
(HoodieSchema.serializeVectorColumnsMetadata); otherwise they would look like plain bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import call, from_numpy, is_valid, make_bitmap, take, to_numbers
from hoodie_py.arrow.fields import is_any_list
from hoodie_py.errors import CorruptFileError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.logical_types import VECTOR, name_type, read_type_name

STORAGE = "FIXED_BYTES"
COLUMNS_KEY = "hoodie.vector.columns"

_ELEMENTS: dict[str, pa.DataType] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_NAMES = {type_: name for name, type_ in _ELEMENTS.items()}
_DESCRIPTOR = re.compile(r"\s*VECTOR\s*\(\s*(\d{1,10})\s*(?:,\s*(\w+)\s*)?(?:,\s*(\w+)\s*)?\)\s*", re.IGNORECASE)
_ENTRY = re.compile(r"\s*([^:,()]+):(VECTOR\s*\([^()]*\))\s*(?:,|$)", re.IGNORECASE)
_MOST_BYTES = 1 << 31
_MOST_DIGITS = 10
_MOST_ITEMS = (1 << 31) - 1
_HINT = "Rewrite the file, or give the table's schema the dimension that its files have."


@dataclass(frozen=True, slots=True)
class Vector:
    """A type of vectors.

    Attributes:
        dimension: number of elements of a vector.
        element: FLOAT, DOUBLE or INT8.
    """

    dimension: int
    element: str

    @property
    def arrow(self) -> pa.DataType:
        """The type of columns in memory."""
        return pa.list_(pa.field("element", self._element, nullable=False))

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return int(self._element.bit_width) // 8

    @property
    def size(self) -> int:
        """Bytes of a vector."""
        return self.dimension * self.width

    @property
    def descriptor(self) -> str:
        """The type's name in Hudi's metadata; FLOAT is left out."""
        return f"VECTOR({self.dimension})" if self.element == "FLOAT" else f"VECTOR({self.dimension}, {self.element})"

    def mark(self, field: pa.Field) -> pa.Field:
        """Return a field whose metadata contains this type's name."""
        return name_type(field, self.descriptor)

    def to_lists(self, array: pa.Array) -> pa.Array:
        """Convert stored bytes to lists; lists of another layout get the column's layout.

        Raises:
            CorruptFileError: a vector has another dimension, or a null element.
            UnsupportedFeatureError: the values are neither bytes nor lists of the element, or are too many at once.
        """
        source = array.type
        if pa.types.is_dictionary(source):
            return self.to_lists(array.dictionary_decode())
        if pa.types.is_fixed_size_binary(source):
            return self._read_fixed(array)
        if pa.types.is_binary(source) or pa.types.is_large_binary(source):
            return self._read_bytes(array)
        if pa.types.is_null(source):
            return pa.nulls(len(array), self.arrow)
        if is_any_list(source) and source.value_type.equals(self._element):
            lists = array if pa.types.is_list(source) else array.cast(pa.list_(source.value_field))
            misfit = self.find_misfit(lists)
            if misfit is not None:
                raise CorruptFileError(f"A column of type {self.descriptor} has {misfit}.", hint=_HINT)
            return _relabel(lists, self.arrow)
        raise UnsupportedFeatureError(f"A column stored as {source} is not readable as {self.descriptor}.")

    def to_bytes(self, array: pa.Array) -> pa.Array:
        """Convert lists to stored bytes, as Arrow's binary of a fixed size; null lists stay null.

        Raises:
            InvalidTableError: a vector has another dimension, or a null element.
            TypeError: the values are not lists of the element.
        """
        if not pa.types.is_list(array.type) or not array.type.value_type.equals(self._element):
            raise TypeError(f"{array.type} is no {self.descriptor}")
        misfit = self.find_misfit(array)
        if misfit is not None:
            raise InvalidTableError(f"A column of type {self.descriptor} has {misfit}.")
        items = array.flatten()
        data = np.frombuffer(items.buffers()[1] or b"", np.uint8)[items.offset * self.width :][: len(array) * self.size]
        rows, valid = data.reshape(-1, self.size), None
        if array.null_count:
            valid = is_valid(array)
            rows = np.zeros((len(array), self.size), np.uint8)
            rows[valid] = data[: len(items) * self.width].reshape(-1, self.size)
        buffers = [make_bitmap(valid), pa.py_buffer(np.ascontiguousarray(rows).reshape(-1))]
        return pa.Array.from_buffers(pa.binary(self.size), len(array), buffers)

    def find_misfit(self, lists: pa.Array) -> str | None:
        """Return why lists of the element are not vectors of this type; None if they are."""
        lengths = call("list_value_length", lists)
        present = to_numbers(lengths, self.dimension)
        if (present != self.dimension).any():
            return f"a vector of {int(present[np.argmax(present != self.dimension)])} elements"
        return "a vector with a null element" if lists.flatten().null_count else None

    @property
    def _element(self) -> pa.DataType:
        return _ELEMENTS[self.element]

    def _read_fixed(self, array: pa.Array) -> pa.Array:
        if array.type.byte_width != self.size:
            raise self._make_size_error(array.type.byte_width)
        data = array.buffers()[1] or pa.py_buffer(b"")
        ends = np.arange(len(array) + 1, dtype=np.int64) * self.dimension
        return self._make_lists(array, data.slice(array.offset * self.size), ends)

    def _read_bytes(self, array: pa.Array) -> pa.Array:
        if not len(array):
            return pa.nulls(0, self.arrow)
        kind = np.dtype(np.int64 if pa.types.is_large_binary(array.type) else np.int32)
        bounds = np.frombuffer(array.buffers()[1], kind, len(array) + 1, array.offset * kind.itemsize).astype(np.int64)
        lengths, valid = np.diff(bounds), is_valid(array)
        # Bytes of null rows may be anything; a copy by ``take`` drops them.
        if (lengths[~valid] != 0).any():
            return self._read_bytes(take(array, from_numpy(np.arange(len(array)))))
        wrong = valid & (lengths != self.size)
        if wrong.any():
            raise self._make_size_error(int(lengths[np.argmax(wrong)]))
        data = array.buffers()[2] or pa.py_buffer(b"")
        return self._make_lists(array, data.slice(int(bounds[0])), (bounds - bounds[0]) // self.width)

    def _make_lists(self, array: pa.Array, data: pa.Buffer, ends: npt.NDArray[np.int64]) -> pa.Array:
        """Make lists whose elements are adjacent in ``data``; null where the array is null."""
        count = int(ends[-1])
        if count > _MOST_ITEMS:
            message = f"{len(array)} vectors of {self.dimension} elements are too many for one batch."
            raise UnsupportedFeatureError(message, hint="Read with a smaller batch_rows.")
        if data.address % self.width:  # Arrow's kernels need aligned numbers
            data = pa.py_buffer(data.to_pybytes())
        items = pa.Array.from_buffers(self._element, count, [None, data])
        valid = make_bitmap(is_valid(array) if array.null_count else None)
        return pa.Array.from_buffers(
            self.arrow, len(array), [valid, pa.py_buffer(ends.astype(np.int32))], children=[items]
        )

    def _make_size_error(self, size: int) -> CorruptFileError:
        message = f"A column of type {self.descriptor} has a value of {size} bytes, not {self.size}."
        return CorruptFileError(message, hint=_HINT)


def _relabel(lists: pa.Array, target: pa.DataType) -> pa.Array:
    """Give lists a type with another name and nullability of elements, without copying values."""
    buffers = lists.buffers()[:2]
    return pa.Array.from_buffers(target, len(lists), buffers, lists.null_count, lists.offset, [lists.values])


def make_vector(dimension: int, element: str, storage: str = STORAGE) -> Vector:
    """Make a type from its parts.

    Raises:
        CorruptFileError: the dimension is not positive, or the element is unknown.
        UnsupportedFeatureError: vectors are not stored as bytes of a fixed size, or have 2 GiB.
    """
    element = element.upper()
    if dimension < 1 or element not in _ELEMENTS:
        raise CorruptFileError(f"A vector cannot have {dimension} elements of type {element[:40]}.")
    if storage.upper() != STORAGE:
        raise UnsupportedFeatureError(f"Vectors stored as {storage[:40]!r}.")
    vector = Vector(dimension, element)
    if vector.size >= _MOST_BYTES:
        raise UnsupportedFeatureError(f"Vectors of {vector.size} bytes.")
    return vector


def read_vector(tree: Mapping[str, Any]) -> Vector:
    """Read a type from an Avro schema in parsed JSON (VectorLogicalTypeFactory).

    Raises CorruptFileError, UnsupportedFeatureError, as ``make_vector``.
    """
    dimension, element, storage = tree.get("dimension"), tree.get("elementType", "FLOAT"), tree.get("storageBacking")
    if isinstance(dimension, str) and dimension.isascii() and dimension.isdigit() and len(dimension) <= _MOST_DIGITS:
        dimension = int(dimension)
    if type(dimension) is not int or not isinstance(element, str) or not isinstance(storage, str | None):
        raise CorruptFileError(
            "The Avro schema of a vector has no dimension, or an element or storage that is no name."
        )
    return make_vector(dimension, element, storage or STORAGE)


def write_vector(vector: Vector) -> dict[str, Any]:
    """Make the Avro schema of a type, as parsed JSON, with the name that HoodieSchemaConverters gives it."""
    return {
        "type": "fixed",
        "name": f"vector_{vector.element.lower()}_{vector.dimension}",
        "namespace": "",
        "size": vector.size,
        "logicalType": VECTOR,
        "dimension": vector.dimension,
        "elementType": vector.element,
        "storageBacking": STORAGE,
    }


def parse_descriptor(text: str) -> Vector | None:
    """Parse a type's name in metadata, such as ``VECTOR(128, DOUBLE)``; None for a text of another kind.

    Raises CorruptFileError, UnsupportedFeatureError, as ``make_vector``.
    """
    found = _DESCRIPTOR.fullmatch(text)
    if found is None:
        if text.lstrip()[:6].upper() == "VECTOR":
            raise CorruptFileError(
                f"{text[:60]!r} is no type of vectors.", hint="Write VECTOR(128) or VECTOR(128, INT8)."
            )
        return None
    return make_vector(int(found[1]), found[2] or "FLOAT", found[3] or STORAGE)


def find_vector(field: pa.Field) -> Vector | None:
    """Return the type of vectors named in a field's metadata; None if it names none.

    Raises CorruptFileError, UnsupportedFeatureError, as ``make_vector``.
    """
    name = read_type_name(field)
    return None if name is None else parse_descriptor(name)


def find_list_type(type_: pa.DataType) -> Vector | None:
    """Return the type of vectors that corresponds to Arrow's lists of a fixed size; None for other types."""
    if not pa.types.is_fixed_size_list(type_) or type_.value_type not in _NAMES or type_.list_size < 1:
        return None
    return make_vector(type_.list_size, _NAMES[type_.value_type])


def find_stored_type(lists: pa.ListType, size: int) -> Vector | None:
    """Return the type of vectors of ``size`` bytes with such lists in memory; None if there is none."""
    name = _NAMES.get(lists.value_type)
    width = 0 if name is None else int(lists.value_type.bit_width) // 8
    return None if name is None or size % width else make_vector(size // width, name)


def list_vectors(schema: pa.Schema) -> dict[str, Vector]:
    """Return the columns of a schema that are vectors, by name.

    Raises CorruptFileError, UnsupportedFeatureError, as ``make_vector``.
    """
    found = {field.name: find_vector(field) for field in schema}
    return {name: vector for name, vector in found.items() if vector is not None}


def write_columns(vectors: Mapping[str, Vector]) -> str:
    """Return the footer entry that lists a file's columns of vectors."""
    return ",".join(f"{name}:{vector.descriptor}" for name, vector in vectors.items())


def read_columns(text: str) -> dict[str, Vector]:
    """Parse the footer entry that lists a file's columns of vectors.

    Raises CorruptFileError if it is not one; UnsupportedFeatureError, as ``make_vector``.
    """
    found: dict[str, Vector] = {}
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        vector = None if entry is None else parse_descriptor(entry[2])
        if entry is None or vector is None:
            raise CorruptFileError(f"The footer's {COLUMNS_KEY} is not readable at {text[at : at + 60]!r}.")
        found[entry[1].strip()] = vector
        at = entry.end()
    return found


def mark_columns(schema: pa.Schema, metadata: Mapping[bytes, bytes] | None) -> pa.Schema:
    """Return a Parquet file's columns, with the columns that its footer lists as vectors marked as such.

    Raises CorruptFileError if the footer's entry is damaged; UnsupportedFeatureError, as ``make_vector``.
    """
    text = (metadata or {}).get(COLUMNS_KEY.encode())
    for name, vector in read_columns(text.decode("utf-8", "replace")).items() if text else ():
        at = schema.get_field_index(name)
        if at >= 0:
            schema = schema.set(at, vector.mark(schema.field(at).with_type(vector.arrow)))
    return schema
