"""Layout of a Lance file of format 2: its columns, and the places of their pages. Pages are not decoded here.

From the end of the file backwards:

    footer      40 bytes: where column metadata starts, where the two tables start, their counts, version, "LANC"
    tables      position and size of each global buffer, and before them of each column's metadata
    metadata    of each column: the places of its pages' buffers
    buffers     global buffers, the first of which is the file descriptor: schema and row count; before them the pages

Up to format 2.0 every field, including its children, has a column; later only fields without children have one. Hudi's
bloom filter and range of keys are in the schema's metadata (``HoodieBaseLanceWriter``).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile.protobuf import as_bytes, read_fields, read_numbers
from hoodie_py.formats.limits import get_limits, raise_limit_error

Range = tuple[int, int]

_FOOTER = struct.Struct("<QQQIIHH4s")
FOOTER_BYTES = _FOOTER.size
_MAGIC = b"LANC"
_FIRST_VERSION = (0, 3)  # of format 2, which calls itself 0.3 or 2.0
_LAST_KNOWN = (2, 3)  # later versions may lay columns out differently
_PLACE = struct.Struct("<QQ")
_PACKED = b"packed"  # marks a struct that is stored as one column
_BLOB = b"blob"  # marks a field with values outside of its pages
_MOST_BUFFERS = 1 << 20


@dataclass(frozen=True, slots=True)
class Footer:
    """The end of a file. The layout is read from everything after ``start``."""

    start: int
    column_places: tuple[Range, ...]
    descriptor_place: Range
    version: tuple[int, int]


@dataclass(slots=True)
class _Field:
    name: str = ""
    number: int = 0
    parent: int = 0  # 0 if missing, since the format leaves zeros out; -1 for top-level fields
    is_packed: bool = False
    is_blob: bool = False
    children: list[_Field] = field(default_factory=list)

    def count_columns(self, version: tuple[int, int]) -> int:
        if not self.children or self.is_packed:
            return 1
        own = 1 if version == (2, 0) else 0
        return own + sum(child.count_columns(version) for child in self.children)

    @property
    def has_blobs(self) -> bool:
        return self.is_blob or any(child.has_blobs for child in self.children)


@dataclass(frozen=True, slots=True)
class LanceLayout:
    """The facts in a file's metadata.

    Attributes:
        rows: number of rows.
        columns: names of the top-level columns, in order.
        metadata: metadata of the schema.
        start: the first byte after the pages; reading anything needs the rest of the file.
        has_null_structs: whether the format can store a struct as null.
    """

    rows: int
    columns: tuple[str, ...]
    metadata: Mapping[bytes, bytes]
    start: int
    has_null_structs: bool
    _buffers: tuple[tuple[Range, ...], ...]  # of each stored column
    _stored: Mapping[str, range] | None  # the stored columns of each top-level column; None if they do not add up
    _scattered: frozenset[str]  # top-level columns with values outside of the known places

    def find_ranges(self, names: Collection[str]) -> list[Range] | None:
        """Return the places of the pages of some columns, ascending; None if the whole file must be read."""
        if self._stored is None or self._scattered.intersection(names):
            return None
        found = (self._buffers[at] for name in self.columns if name in names for at in self._stored[name])
        return sorted({place for places in found for place in places})


def read_footer(tail: bytes, size: int) -> Footer | int:
    """Read the footer and its tables from the last bytes of a file of ``size`` bytes.

    If ``tail`` is too short, return how many of the last bytes are needed.

    Raises:
        CorruptFileError: the file is not a Lance file, or a place is outside of it.
        UnsupportedFeatureError: the version is not supported.
    """
    if size < FOOTER_BYTES or tail[-4:] != _MAGIC:
        raise CorruptFileError("The file is no Lance file, or it is cut short: the mark at its end is missing.")
    if len(tail) < FOOTER_BYTES:
        return FOOTER_BYTES
    _, columns_at, buffers_at, buffers, columns, *numbers, _ = _FOOTER.unpack(tail[-FOOTER_BYTES:])
    version = (2, 0) if (numbers[0], numbers[1]) == _FIRST_VERSION else (numbers[0], numbers[1])
    if version[0] != 2:
        raise UnsupportedFeatureError(f"Lance files of version {numbers[0]}.{numbers[1]}.", hint="Format 2 is read.")
    if columns > get_limits().columns:
        raise_limit_error(CorruptFileError, f"A Lance file has {columns} columns", "columns")
    if not buffers or buffers > _MOST_BUFFERS:
        raise CorruptFileError(f"A Lance file has {buffers} global buffers.")
    end = size - FOOTER_BYTES
    if columns_at + columns * _PLACE.size > end or buffers_at + buffers * _PLACE.size > end:
        raise CorruptFileError("A table of a Lance file lies outside of the file.")
    first = min(columns_at, buffers_at)
    if size - first > len(tail):
        return int(size - first)
    base = size - len(tail)
    column_places = tuple(_read_places(tail, columns_at - base, columns, columns_at))
    buffer_places = tuple(_read_places(tail, buffers_at - base, buffers, buffers_at))
    start = min((place for place, _ in (*column_places, *buffer_places)), default=first)
    if size - start > get_limits().metadata_bytes:
        raise_limit_error(CorruptFileError, f"A Lance file has {size - start} bytes of metadata", "metadata_bytes")
    return Footer(min(start, first), column_places, buffer_places[0], version)


def _read_places(tail: bytes, at: int, count: int, end: int) -> Iterator[Range]:
    for number in range(count):
        place, length = _PLACE.unpack_from(tail, at + number * _PLACE.size)
        if place + length > end:
            raise CorruptFileError("A part of a Lance file's metadata lies outside of its place.")
        yield place, place + length


def read_layout(tail: bytes, size: int, footer: Footer) -> LanceLayout:
    """Read the layout from the bytes of a file, starting at ``footer.start`` or before.

    Raises:
        CorruptFileError: the metadata contradicts itself, or pages are outside of the file.
    """
    base = size - len(tail)
    start, stop = footer.descriptor_place
    fields, metadata, rows = _read_descriptor(tail[start - base : stop - base])
    if rows > get_limits().file_rows:
        raise_limit_error(CorruptFileError, f"A Lance file has {rows} rows", "file_rows")
    buffers = tuple(tuple(_read_column(tail[first - base : last - base], size)) for first, last in footer.column_places)
    names = tuple(each.name for each in fields)
    if len(set(names)) < len(names):
        raise CorruptFileError("A Lance file has two columns of one name.")
    scattered = frozenset(each.name for each in fields if each.has_blobs)
    stored = _assign(fields, footer.version, len(buffers))
    return LanceLayout(rows, names, metadata, footer.start, footer.version != (2, 0), buffers, stored, scattered)


def _assign(fields: Sequence[_Field], version: tuple[int, int], count: int) -> Mapping[str, range] | None:
    stored: dict[str, range] = {}
    at = 0
    for each in fields:
        columns = each.count_columns(version)
        stored[each.name] = range(at, at + columns)
        at += columns
    return stored if at == count and version <= _LAST_KNOWN else None


def _read_descriptor(data: bytes) -> tuple[list[_Field], dict[bytes, bytes], int]:
    """Read the top-level fields, the schema's metadata, and the number of rows."""
    schema, rows = b"", 0
    for number, value in read_fields(data):
        if number == 1 and isinstance(value, bytes):
            schema = value
        elif number == 2 and isinstance(value, int):
            rows = value
    listed: list[_Field] = []
    metadata: dict[bytes, bytes] = {}
    for number, value in read_fields(schema):
        if number == 1 and isinstance(value, bytes):
            listed.append(_read_field(value))
        elif number == 5 and isinstance(value, bytes):
            entry = dict(read_fields(value))
            metadata[as_bytes(entry.get(1))] = as_bytes(entry.get(2))
    return _make_tree(listed), metadata, rows


def _make_tree(listed: Sequence[_Field]) -> list[_Field]:
    """Return the top-level fields with their children; parents must come before their children."""
    known: dict[int, _Field] = {}
    top = []
    for each in listed:
        if each.number in known:
            raise CorruptFileError("A Lance file has two fields of one number.")
        parent = known.get(each.parent)
        if each.parent < 0:
            top.append(each)
        elif parent is not None:
            parent.children.append(each)
        else:
            raise CorruptFileError("A field of a Lance file has no parent.")
        known[each.number] = each
    return top


def _read_field(data: bytes) -> _Field:
    made = _Field()
    for number, value in read_fields(data):
        if number == 2:
            try:
                made.name = as_bytes(value).decode()
            except UnicodeDecodeError:
                raise CorruptFileError("A column's name in a Lance file is no text.") from None
        elif number == 3:
            made.number = _as_signed(value)
        elif number == 4:
            made.parent = _as_signed(value)
        elif number in (9, 10) and isinstance(value, bytes):  # the name of an extension; an entry of the metadata
            made.is_blob |= _BLOB in value
            if number == 10:
                made.is_packed |= as_bytes(dict(read_fields(value)).get(1)) == _PACKED
    return made


def _read_column(data: bytes, size: int) -> Iterator[Range]:
    """Yield the places of a column's buffers, including the buffers of its pages."""
    offsets: list[int] = []
    sizes: list[int] = []
    for number, value in read_fields(data):
        if number == 2 and isinstance(value, bytes):
            yield from _read_column_page(value, size)
        elif number == 3:
            offsets.extend(read_numbers(value))
        elif number == 4:
            sizes.extend(read_numbers(value))
    yield from _pair(offsets, sizes, size)


def _read_column_page(data: bytes, size: int) -> Iterator[Range]:
    offsets: list[int] = []
    sizes: list[int] = []
    for number, value in read_fields(data):
        if number == 1:
            offsets.extend(read_numbers(value))
        elif number == 2:
            sizes.extend(read_numbers(value))
    yield from _pair(offsets, sizes, size)


def _pair(offsets: Sequence[int], lengths: Sequence[int], size: int) -> Iterator[Range]:
    if len(offsets) != len(lengths):
        raise CorruptFileError("A Lance file has buffers without a size.")
    for offset, length in zip(offsets, lengths, strict=True):
        if offset + length > size:
            raise CorruptFileError("A page of a Lance file lies outside of the file.", offset=offset)
        if length:
            yield offset, offset + length


def _as_signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise CorruptFileError("A field's number in a Lance file is no number.")
    return value - (1 << 64) if value >= 1 << 63 else value
