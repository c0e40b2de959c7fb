"""Parse Avro schemas into a small tree of vetted types.

A log block's header contains its own schema, so a schema is as hostile an input as the records. The decoders rely on
these checks:

* no recursive types, and bounded depth and size (``limits``), where a reference to a named type counts in full;
* names are defined once and before use, fields are not repeated, a union is not directly inside a union;
* array items take at least one byte, so that a count can be checked against the remaining bytes.

Logical types follow Avro's own rule (org.apache.avro.LogicalTypes): an unknown one, or one that does not fit its base
type, is ignored. Two have no counterpart in Spark and are refused: decimals of more than 38 digits, and durations.

Avro defines a named type once and refers to it by name afterwards. Columns of blobs share the name ``blob``, and so do
vectors of one type. To change a schema, all definitions are written in full; references are restored at the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.logical_types import BLOB, RECORD_TYPES, VECTOR
from hoodie_py.formats.logical_types.vector import Vector, read_vector

MAX_DECIMAL_PRECISION = 38

_MIN_SIZES: dict[str, int] = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
}
_LOGICAL_TYPES = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {"time-micros", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"}
    ),
    "string": frozenset({"uuid"}),
}


@dataclass(frozen=True, slots=True, eq=False)
class AvroType:
    """A vetted type: the smallest size of a value in bytes, and the number of its types, references counted in full."""

    min_size: int
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Primitive(AvroType):
    """null, boolean, int, long, float, double, bytes or string, with the logical type that applies."""

    kind: str
    logical: str | None = None

    @property
    def is_null(self) -> bool:
        """Whether this is Avro's null type."""
        return self.kind == "null"


@dataclass(frozen=True, slots=True, eq=False)
class Decimal(AvroType):
    """A decimal; ``size`` is the length of its fixed in bytes, None if it is stored as bytes."""

    precision: int
    scale: int
    size: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Fixed(AvroType):
    """``size`` bytes, which may be a vector."""

    size: int
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Enum(AvroType):
    """One of ``symbols``, by number."""

    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Array(AvroType):
    """A list of ``items``."""

    items: AvroType


@dataclass(frozen=True, slots=True, eq=False)
class Map(AvroType):
    """String keys to ``values``."""

    values: AvroType


@dataclass(frozen=True, slots=True, eq=False)
class Union(AvroType):
    """One of ``branches``, by number."""

    branches: tuple[AvroType, ...]

    @property
    def members(self) -> tuple[AvroType, ...]:
        """The branches that are not null."""
        return tuple(branch for branch in self.branches if not is_null(branch))

    @property
    def nullable(self) -> bool:
        """Whether null is one of the branches."""
        return len(self.members) < len(self.branches)


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a record; ``default`` is the JSON value, meaningful only if ``has_default``."""

    name: str
    type: AvroType
    has_default: bool
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class Record(AvroType):
    """Fields in order; ``name`` is the full name, ``logical`` the logical type: variant, blob or None."""

    name: str
    fields: tuple[Field, ...]
    logical: str | None = None


def is_null(node: AvroType) -> bool:
    """Return whether a type is Avro's null."""
    return isinstance(node, Primitive) and node.is_null


def parse_record(text: str) -> Record:
    """Parse and vet the schema of a record.

    Raises:
        CorruptFileError: the text is not JSON, or not the Avro schema of a record.
        UnsupportedFeatureError: the schema is recursive, too deep or too wide, or has a type that no column can have.
    """
    if len(text) > get_limits().schema_chars:
        raise_limit_error(UnsupportedFeatureError, f"An Avro schema has {len(text)} characters", "schema_chars")
    try:
        tree = json.loads(text)
        # Either may contain half of a surrogate pair, which Arrow refuses in names.
        if "\\u" in text or not text.isascii():
            json.dumps(tree, ensure_ascii=False).encode()
    except RecursionError:
        raise UnsupportedFeatureError("The Avro schema is nested too deeply.") from None
    except UnicodeEncodeError:
        raise CorruptFileError("The Avro schema has text that is not Unicode.") from None
    except ValueError as error:
        raise CorruptFileError(f"The Avro schema is not JSON: {error}.") from None
    node = _SchemaReader().read(tree, "", 0)
    if not isinstance(node, Record):
        raise CorruptFileError("The Avro schema of a record is expected, this one is of another type.")
    if not node.fields:
        raise CorruptFileError("The Avro schema has no fields.")
    return node


class _SchemaReader:
    """Converts one schema's JSON to types. It keeps the named types so far; None while one is being defined."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}
        self._most_levels = get_limits().schema_depth

    def read(self, tree: Any, namespace: str, depth: int) -> AvroType:
        """Read one type, given the namespace around it and the number of records, arrays and maps around it."""
        if isinstance(tree, str):
            return self._find_type(tree, namespace)
        if isinstance(tree, list):
            return self._read_union(tree, namespace, depth)
        if not isinstance(tree, dict) or "type" not in tree:
            raise CorruptFileError(f"Not an Avro type: {_make_excerpt(tree)}.")
        kind = tree["type"]
        if not isinstance(kind, str):
            self._check_depth(depth)
            return self.read(kind, namespace, depth + 1)
        if kind in _MIN_SIZES:
            return _read_primitive(kind, tree)
        if kind in ("record", "error", "array", "map"):
            self._check_depth(depth)
        if kind == "array":
            return self._read_array(tree, namespace, depth)
        if kind == "map":
            values = self.read(tree.get("values"), namespace, depth + 1)
            return Map(1, _sum_widths(values), values)
        if kind in ("record", "error", "enum", "fixed"):
            return self._read_definition(kind, tree, namespace, depth)
        return self._find_type(kind, namespace)

    def _check_depth(self, depth: int) -> None:
        if depth >= self._most_levels:
            raise_limit_error(UnsupportedFeatureError, "The Avro schema is nested too deeply", "schema_depth")

    def _find_type(self, name: str, namespace: str) -> AvroType:
        if name in _MIN_SIZES:
            return Primitive(_MIN_SIZES[name], 1, name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for candidate in (full, name):
            if candidate in self._named:
                node = self._named[candidate]
                if node is None:
                    raise UnsupportedFeatureError(f"The Avro type {candidate[:200]!r} contains itself.")
                return node
        raise CorruptFileError(f"The Avro type {name[:200]!r} is not defined.")

    def _read_union(self, branches: list[Any], namespace: str, depth: int) -> Union | AvroType:
        if any(isinstance(branch, list) for branch in branches):
            raise CorruptFileError("An Avro union must not stand directly in another.")
        nodes = _drop_logical_types(tuple(self.read(branch, namespace, depth) for branch in branches))
        union = Union(1, _sum_widths(*nodes), nodes)
        if not union.members:
            raise CorruptFileError("An Avro union must have a branch that is not null.")
        return union

    def _read_array(self, tree: Mapping[str, Any], namespace: str, depth: int) -> Array:
        items = self.read(tree.get("items"), namespace, depth + 1)
        if items.min_size == 0:
            raise UnsupportedFeatureError("Avro arrays whose items take no bytes are not supported.")
        return Array(1, _sum_widths(items), items)

    def _read_definition(self, kind: str, tree: Mapping[str, Any], namespace: str, depth: int) -> AvroType:
        full, inner = _read_full_name(tree, namespace)
        if full in self._named:
            raise CorruptFileError(f"The Avro type {full[:200]!r} is defined twice.")
        self._named[full] = None
        node: AvroType
        if kind == "enum":
            node = _read_enum(tree)
        elif kind == "fixed":
            node = _read_fixed(tree)
        else:
            node = self._read_record(tree, full, inner, depth)
        self._named[full] = node
        return node

    def _read_record(self, tree: Mapping[str, Any], name: str, namespace: str, depth: int) -> Record:
        entries = tree.get("fields")
        if not isinstance(entries, list):
            raise CorruptFileError("An Avro record must have a list of fields.")
        fields: list[Field] = []
        names: set[str] = set()
        for entry in entries:
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or "type" not in entry:
                raise CorruptFileError(f"Not a field of an Avro record: {_make_excerpt(entry)}.")
            own = entry["name"]
            if own in names:
                raise CorruptFileError(f"The Avro record has two fields named {own[:200]!r}.")
            names.add(own)
            node = self.read(entry["type"], namespace, depth + 1)
            fields.append(Field(own, node, "default" in entry, entry.get("default")))
        width = _sum_widths(*(field.type for field in fields))
        logical = tree.get("logicalType")
        known = logical if logical in RECORD_TYPES else None
        return Record(sum(field.type.min_size for field in fields), width, name, tuple(fields), known)


def _sum_widths(*parts: AvroType) -> int:
    width = 1 + sum(part.width for part in parts)
    if width > get_limits().schema_types:
        raise_limit_error(UnsupportedFeatureError, "The Avro schema is made of too many types", "schema_types")
    return width


def _make_excerpt(tree: Any) -> str:
    return type(tree).__name__ if isinstance(tree, (dict, list)) else repr(tree)[:80]


def _read_full_name(tree: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """Return the full name of a definition, and the namespace for names inside it."""
    name = tree.get("name")
    if not isinstance(name, str) or not name:
        raise CorruptFileError("A named Avro type has no name.")
    if "." in name:
        return name, name.rpartition(".")[0]
    own = tree.get("namespace", namespace)
    if not isinstance(own, str):
        raise CorruptFileError(f"The namespace of the Avro type {name[:200]!r} is not text.")
    return (f"{own}.{name}" if own else name), own


def _read_primitive(kind: str, tree: Mapping[str, Any]) -> AvroType:
    logical = tree.get("logicalType")
    if kind == "bytes" and logical == "decimal":
        decimal = _read_decimal(tree, None)
        if decimal is not None:
            return decimal
    known = isinstance(logical, str) and logical in _LOGICAL_TYPES.get(kind, ())
    return Primitive(_MIN_SIZES[kind], 1, kind, logical if known else None)


def _read_fixed(tree: Mapping[str, Any]) -> AvroType:
    size = tree.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 1 << 31:
        raise CorruptFileError(f"An Avro fixed cannot have size {_make_excerpt(size)}.")
    if tree.get("logicalType") == "duration":
        raise UnsupportedFeatureError("Avro durations are not supported.")
    if tree.get("logicalType") == "decimal":
        decimal = _read_decimal(tree, size)
        if decimal is not None:
            return decimal
    vector = read_vector(tree) if tree.get("logicalType") == VECTOR else None
    if vector is not None and vector.size != size:
        raise CorruptFileError(f"An Avro fixed of {size} bytes cannot be a {vector.descriptor}.")
    return Fixed(size, 1, size, vector)


def _read_decimal(tree: Mapping[str, Any], size: int | None) -> Decimal | None:
    """Read a decimal's precision and scale; None if they are not valid, since the type is then plain bytes."""
    precision, scale = tree.get("precision"), tree.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or precision < 1 or not 0 <= scale <= precision:
        return None
    if size is not None and size < MAX_DECIMAL_PRECISION and precision > len(str((1 << (8 * size - 1)) - 1)) - 1:
        return None
    if precision > MAX_DECIMAL_PRECISION:
        message = f"Decimals of {precision} digits are not supported (at most {MAX_DECIMAL_PRECISION})."
        raise UnsupportedFeatureError(message)
    return Decimal(1 if size is None else size, 1, precision, scale, size)


def _drop_logical_types(branches: tuple[AvroType, ...]) -> tuple[AvroType, ...]:
    """Drop the logical types in a union of int and long: Spark reads both as plain numbers."""
    members = [branch for branch in branches if not is_null(branch)]
    kinds = [member.kind for member in members if isinstance(member, Primitive)]
    if len(members) != 2 or sorted(kinds) != ["int", "long"]:
        return branches
    return tuple(
        Primitive(branch.min_size, 1, branch.kind) if isinstance(branch, Primitive) else branch for branch in branches
    )


def _read_enum(tree: Mapping[str, Any]) -> Enum:
    symbols = tree.get("symbols")
    if not isinstance(symbols, list) or not symbols or not all(isinstance(symbol, str) for symbol in symbols):
        raise CorruptFileError("An Avro enum must have a list of symbols.")
    return Enum(1, 1, tuple(symbols))


_SHARED = frozenset({BLOB, VECTOR})
_INNER = ("type", "items", "values", "fields")


def write_in_full(tree: Any) -> Any:
    """Return a schema (parsed JSON) with definitions in place of references to shared logical types."""
    return _expand(tree, {})


def name_repeated(tree: Any) -> Any:
    """Return a schema (parsed JSON) that defines each shared logical type where it occurs first, and refers to it
    later.
    """
    return _shorten(tree, {})


def _is_shared(tree: Any) -> bool:
    return isinstance(tree, dict) and tree.get("logicalType") in _SHARED and tree.get("namespace") == ""


def _expand(tree: Any, known: dict[str, Any]) -> Any:
    if isinstance(tree, str):
        return known.get(tree, tree)
    if _is_shared(tree):
        known[str(tree.get("name"))] = tree
        return tree
    return _map_inner(tree, known, _expand)


def _shorten(tree: Any, known: dict[str, Any]) -> Any:
    if not _is_shared(tree):
        return _map_inner(tree, known, _shorten)
    name = str(tree.get("name"))
    if known.get(name) == tree:
        return name
    known[name] = tree
    return tree


def _map_inner(tree: Any, known: dict[str, Any], change: Any) -> Any:
    if isinstance(tree, list):
        return [change(each, known) for each in tree]
    if not isinstance(tree, dict):
        return tree
    return {key: change(value, known) if key in _INNER else value for key, value in tree.items()}
