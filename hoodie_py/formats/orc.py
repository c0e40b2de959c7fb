"""Layout of an ORC file: stripes, types, user metadata. Columns are not decoded here.

Arrow's reader decodes ORC. It does not report some facts that are read here: the rows of each stripe, the places of a
column's streams, and the time zone in which a stripe was written. It also trusts a footer that promises any number of
rows, and terminates the process on a decimal of more than 38 digits.

From the end of the file backwards: a byte with the length of the postscript, the postscript, the footer (compressed),
stripe statistics, the stripes. A stripe consists of index streams, data streams, and its own footer (compressed).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.schema import MAX_DECIMAL_PRECISION
from hoodie_py.formats.hfile.protobuf import as_bytes, read_fields, read_numbers, read_varint
from hoodie_py.formats.limits import get_limits, raise_limit_error

Range = tuple[int, int]

_MAGIC = b"ORC"
_MOST_TAIL = 256  # the length of a postscript is one byte
_CODECS = ("", "zlib", "snappy", "lzo", "lz4_raw", "zstd")
_HEAD = 3  # bytes before each compressed chunk
_MOST_CHUNK = 1 << 23
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
TIMESTAMP, _DECIMAL = 9, 14


@dataclass(frozen=True, slots=True)
class OrcType:
    """One node of the type tree, whose number is its place in the footer."""

    kind: int
    children: tuple[int, ...]
    names: tuple[str, ...]
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Stripe:
    """The place of a stripe and its number of rows."""

    start: int
    data_end: int
    end: int
    rows: int


@dataclass(frozen=True, slots=True)
class OrcLayout:
    """The facts in a file's footer; ``metadata`` is the writer's own."""

    rows: int
    stripes: tuple[Stripe, ...]
    types: tuple[OrcType, ...]
    metadata: Mapping[bytes, bytes]
    codec: str
    chunk: int

    def find_streams(self, footer: StripeFooter, stripe: Stripe, names: Collection[str]) -> list[Range]:
        """Return the places of some columns' streams and of the stripe's footer, ascending."""
        root = self.types[0]
        wanted = {0}
        for name, child in zip(root.names, root.children, strict=True):
            if name in names:
                wanted.update(self._list_below(child))
        found = []
        at = stripe.start
        for column, length in footer.streams:
            if column in wanted and length:
                found.append((at, at + length))
            at += length
        return [*found, (stripe.data_end, stripe.end)]

    def _list_below(self, number: int) -> Iterator[int]:
        yield number
        for child in self.types[number].children:
            yield from self._list_below(child)


@dataclass(frozen=True, slots=True)
class StripeFooter:
    """The streams of a stripe, in order, as (type number, bytes), and the time zone of its times."""

    streams: tuple[tuple[int, int], ...]
    zone: str


def read_tail(tail: bytes, size: int) -> OrcLayout | int:
    """Read the layout from the last bytes of a file of ``size`` bytes.

    If ``tail`` is too short, return how many of the last bytes are needed.

    Raises:
        CorruptFileError: the file is not an ORC file, or contradicts itself.
        UnsupportedFeatureError: the compression is not supported.
    """
    if len(tail) < min(size, _MOST_TAIL):
        return min(size, _MOST_TAIL)
    length = tail[-1] if tail else 0
    if size < length + 1 + len(_MAGIC) or len(tail) < length + 1:
        raise CorruptFileError("The file is no ORC file, or it is cut short.")
    said = dict(read_fields(tail[-1 - length : -1])) if length else {}
    if said.get(8000) != _MAGIC:
        raise CorruptFileError("The file is no ORC file, or it is cut short: the mark at its end is missing.")
    footer, codec, chunk = _as_int(said.get(1)), _as_int(said.get(2)), _as_int(said.get(3))
    needed = footer + length + 1
    if needed + _as_int(said.get(5)) > size - len(_MAGIC):
        raise CorruptFileError("The footer of an ORC file is longer than the file.")
    if footer > get_limits().metadata_bytes:
        raise_limit_error(CorruptFileError, f"An ORC file has a footer of {footer} bytes", "metadata_bytes")
    if needed > len(tail):
        return needed
    if codec >= len(_CODECS) or (codec and not 0 < chunk <= _MOST_CHUNK):
        raise CorruptFileError(f"An ORC file has compression {codec} with chunks of {chunk} bytes.")
    plain = decompress(tail[-needed : -1 - length], _CODECS[codec], chunk)
    return _read_footer(plain, size - needed, _CODECS[codec], chunk)


def read_stripe_footer(data: bytes, layout: OrcLayout) -> StripeFooter:
    """Read the footer of a stripe, the bytes from ``data_end`` to ``end``.

    Raises:
        CorruptFileError: the footer is damaged, or its time zone is not valid.
    """
    streams = []
    zone = "UTC"
    for number, value in read_fields(decompress(data, layout.codec, layout.chunk)):
        if number == 1 and isinstance(value, bytes):
            stream = dict(read_fields(value))
            streams.append((_as_int(stream.get(2)), _as_int(stream.get(3))))
        elif number == 3 and isinstance(value, bytes):
            zone = value.decode("latin-1")
    if _ZONE.fullmatch(zone) is None:
        raise CorruptFileError(f"A stripe of an ORC file was written in the time zone {zone[:40]!r}.")
    return StripeFooter(tuple(streams), zone)


def _read_footer(data: bytes, end: int, codec: str, chunk: int) -> OrcLayout:
    stripes: list[Stripe] = []
    types: list[OrcType] = []
    metadata: dict[bytes, bytes] = {}
    rows = 0
    for number, value in read_fields(data):
        if number == 6:
            rows = _as_int(value)
        elif isinstance(value, bytes):
            if number == 3:
                stripes.append(_read_stripe(value, end))
            elif number == 4:
                types.append(_read_type(value))
            elif number == 5:
                entry = dict(read_fields(value))
                metadata[as_bytes(entry.get(1))] = as_bytes(entry.get(2))
    _check_rows(rows, stripes)
    _check_types(types)
    return OrcLayout(rows, tuple(stripes), tuple(types), metadata, codec, chunk)


def _check_rows(rows: int, stripes: Collection[Stripe]) -> None:
    if rows != sum(stripe.rows for stripe in stripes):
        raise CorruptFileError(f"An ORC file of {rows} rows has others in its stripes.")
    if rows > get_limits().file_rows:
        raise_limit_error(CorruptFileError, f"An ORC file has {rows} rows", "file_rows")


def _check_types(types: list[OrcType]) -> None:
    if len(types) > get_limits().columns:
        raise_limit_error(CorruptFileError, f"An ORC file has {len(types)} columns", "columns")
    if not types or len(types[0].names) != len(types[0].children):
        raise CorruptFileError("The columns of an ORC file have no names.")
    seen = 0
    for number, each in enumerate(types):
        seen += len(each.children)
        # Children come after their parents, so there is no cycle.
        if any(not number < child < len(types) for child in each.children):
            raise CorruptFileError("The types of an ORC file are no tree.")
        if each.kind == _DECIMAL and not (0 < each.precision <= MAX_DECIMAL_PRECISION and each.scale <= each.precision):
            raise UnsupportedFeatureError(f"A decimal of {each.precision} digits, {each.scale} of them decimal places.")
    if seen != len(types) - 1:
        raise CorruptFileError("The types of an ORC file are no tree.")


def _read_stripe(data: bytes, end: int) -> Stripe:
    said = dict(read_fields(data))
    start, index, stored, footer, rows = (_as_int(said.get(number)) for number in range(1, 6))
    data_end = start + index + stored
    if data_end + footer > end:
        raise CorruptFileError("A stripe of an ORC file lies outside of the file.", offset=start)
    return Stripe(start, data_end, data_end + footer, rows)


def _read_type(data: bytes) -> OrcType:
    kind = precision = scale = 0
    children: list[int] = []
    names: list[str] = []
    for number, value in read_fields(data):
        if number == 1:
            kind = _as_int(value)
        elif number == 2:
            children.extend(read_numbers(value))
        elif number == 3:
            names.append(as_bytes(value).decode("utf-8", "replace"))
        elif number == 5:
            precision = _as_int(value)
        elif number == 6:
            scale = _as_int(value)
    return OrcType(kind, tuple(children), tuple(names), precision, scale)


def decompress(data: bytes, codec: str, chunk: int) -> bytes:
    """Decompress a stream of chunks, each of at most ``chunk`` plain bytes.

    Raises:
        CorruptFileError: a chunk is cut short or damaged.
        UnsupportedFeatureError: the codec is LZO.
    """
    if not codec:
        return data
    if codec == "lzo":
        raise UnsupportedFeatureError("ORC files with LZO compression.")
    parts = []
    at = total = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + _HEAD], "little")
        stop = at + _HEAD + (head >> 1)
        if stop > len(data):
            raise CorruptFileError("A compressed part of an ORC file is cut short.")
        part = data[at + _HEAD : stop]
        parts.append(part if head & 1 else _decompress_chunk(part, codec, chunk))
        at = stop
        total += len(parts[-1])
        if total > get_limits().metadata_bytes:
            raise_limit_error(CorruptFileError, f"An ORC file has {total} bytes of metadata", "metadata_bytes")
    return b"".join(parts)


def _decompress_chunk(part: bytes, codec: str, chunk: int) -> bytes:
    try:
        if codec == "zlib":
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(part, chunk)
        if codec == "lz4_raw":
            return decompress_lz4(part, chunk)
        if codec == "snappy":
            length = min(read_varint(part, 0)[0], chunk)
            return bytes(pa.decompress(part, length, codec, asbytes=True))
        with pa.CompressedInputStream(pa.BufferReader(part), codec) as stream:
            return bytes(stream.read(chunk))
    except (zlib.error, pa.ArrowException, OSError, ValueError) as error:
        raise CorruptFileError(f"A compressed part of an ORC file is damaged: {error}") from None


def decompress_lz4(data: bytes, most: int) -> bytes:
    """Decompress a raw LZ4 block. It does not store its plain size, which Arrow's decoder needs.

    Raises:
        CorruptFileError: the block is damaged, or has more than ``most`` plain bytes.
    """
    out = bytearray()
    at = 0
    try:
        while True:
            token = data[at]
            at += 1
            count, at = _read_lz4_length(data, at, token >> 4)
            out += data[at : at + count]
            at += count
            if at >= len(data):
                break
            back = data[at] | data[at + 1] << 8
            count, at = _read_lz4_length(data, at + 2, token & 15)
            if not 0 < back <= len(out) or len(out) + count > most:
                raise CorruptFileError("A compressed part of an ORC file is damaged.", offset=at)
            # A match may overlap the bytes that it adds: it then repeats them.
            copied = bytes(out[-back:]) * ((count + 4) // back + 1)
            out += copied[: count + 4]
    except IndexError:
        raise CorruptFileError("A compressed part of an ORC file is cut short.") from None
    if at > len(data) or len(out) > most:
        raise CorruptFileError("A compressed part of an ORC file is damaged.")
    return bytes(out)


def _read_lz4_length(data: bytes, at: int, count: int) -> tuple[int, int]:
    if count == 15:
        while data[at] == 255:
            count += 255
            at += 1
        count += data[at]
        at += 1
    return count, at


def _as_int(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0
