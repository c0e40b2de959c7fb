"""Writes rows as JSON texts, in the two styles of Java Hudi's change data.

Images from a change log are printed by Avro's ``GenericData.toString``, all others by Jackson
(``InternalRowToJsonStringConverter``; Hudi ``CDCFileGroupIterator``):

    AVRO     {"id": "k1", "price": null}  with spaces and nulls; bytes are Latin-1 text
    JACKSON  {"id":"k1"}                  without; nulls in lists stay; bytes are Base64

Both print dates as days and times as microseconds since 1970, and NaN and infinities as texts. Decimals are numbers
here; Java prints their bytes, or nothing useful.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, is_valid, to_numbers
from hoodie_py.arrow.fields import is_any_list

_CONTROLS = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r"}
_SPECIAL = '["\\\\\\x00-\\x1f]'
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """The details in which the styles differ."""

    comma: str
    colon: str
    shows_nulls: bool
    base64: bool


AVRO = JsonStyle(", ", ": ", shows_nulls=True, base64=False)
JACKSON = JsonStyle(",", ":", shows_nulls=False, base64=True)


def write_json(array: pa.Array, style: JsonStyle) -> pa.Array:
    """Return the JSON text of each value, a string array; null where the value is null."""
    texts = _write_values(array, style)
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string())) if array.null_count else texts


def _write_values(array: pa.Array, style: JsonStyle) -> pa.Array:
    """Return texts; the caller replaces those of nulls."""
    type_ = array.type
    if isinstance(array, pa.DictionaryArray):
        return _write_values(array.dictionary_decode(), style)
    if pa.types.is_struct(type_):
        return _write_struct(array, style)
    if pa.types.is_map(type_):
        return _write_map(array, style)
    if is_any_list(type_):
        return _write_list(array, style)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        plain = array.cast(pa.binary())
        return _quote(_to_base64(plain) if style.base64 else _escape(_to_latin1(plain)))
    if pa.types.is_floating(type_):
        return _write_floats(array)
    if pa.types.is_timestamp(type_):
        array = array.cast(pa.timestamp("us", type_.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date(type_):
        array = array.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_time(type_):
        array = array.cast(pa.int64() if type_.bit_width == 64 else pa.int32())
    elif pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _quote(_escape(array.cast(pa.string())))
    return array.cast(pa.string())


def _fill(array: pa.Array, style: JsonStyle) -> pa.Array:
    """Return the text of each value, ``null`` for nulls."""
    texts = write_json(array, style)
    return texts.fill_null("null") if texts.null_count else texts


def _write_struct(array: pa.StructArray, style: JsonStyle) -> pa.Array:
    columns = array.flatten()
    if not columns:
        return pa.repeat(pa.scalar("{}"), len(array))
    names = [_quote(_escape(pa.array([field.name]))).to_pylist()[0] + style.colon for field in array.type]
    if style.shows_nulls:
        parts = [_prefix(name, _fill(column, style)) for name, column in zip(names, columns, strict=True)]
        return pc.binary_join_element_wise("{", pc.binary_join_element_wise(*parts, style.comma), "}", "")
    parts = [
        _append(_prefix(name, write_json(column, style)), ",") for name, column in zip(names, columns, strict=True)
    ]
    parts = [part.fill_null("") if part.null_count else part for part in parts]
    joined = pc.utf8_rtrim(pc.binary_join_element_wise(*parts, ""), ",")
    return pc.binary_join_element_wise("{", joined, "}", "")


def _prefix(name: str, texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(name, texts, "")


def _append(texts: pa.Array, end: str) -> pa.Array:
    return pc.binary_join_element_wise(texts, end, "")


def _write_list(array: pa.Array, style: JsonStyle) -> pa.Array:
    items = _fill(array.flatten(), style)
    return pc.binary_join_element_wise("[", _join_items(_count_items(array), items, style), "]", "")


def _write_map(array: pa.MapArray, style: JsonStyle) -> pa.Array:
    counts = _count_items(array)
    entries = pc.list_flatten(
        array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("item", array.type.item_type)])))
    )
    keys, values = entries.field("key"), entries.field("item")
    names = keys if pa.types.is_string(keys.type) else _write_values(keys, style)
    plain = _quote(_escape(names.cast(pa.string())))
    if not style.shows_nulls and values.null_count:
        valid = is_valid(values)
        ends = np.concatenate([[0], np.cumsum(valid)])
        bounds = np.concatenate([[0], np.cumsum(counts)])
        counts = np.diff(ends[bounds])
        mask = from_numpy(valid)
        plain, values = plain.filter(mask), values.filter(mask)
    texts = pc.binary_join_element_wise(plain, _fill(values, style), style.colon)
    return pc.binary_join_element_wise("{", _join_items(counts, texts, style), "}", "")


def _count_items(array: pa.Array) -> np.ndarray:
    lengths = pc.list_value_length(array) if not pa.types.is_map(array.type) else _count_entries(array)
    return to_numbers(lengths.fill_null(0).cast(pa.int64())).astype(np.int64)


def _count_entries(array: pa.MapArray) -> pa.Array:
    lengths = np.diff(to_numbers(array.offsets)).astype(np.int64)
    return from_numpy(np.where(is_valid(array), lengths, 0))


def _join_items(counts: np.ndarray, texts: pa.Array, style: JsonStyle) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(from_numpy(offsets), texts), style.comma)


def _write_floats(array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    whole = pc.invert(pc.match_substring_regex(texts, "[.en]"))
    texts = pc.if_else(whole, _append(texts, ".0"), texts)
    if pc.any(pc.match_substring(texts, "e")).as_py():
        texts = pc.replace_substring_regex(texts, r"e\+?", "E")
        texts = pc.replace_substring_regex(texts, r"^(-?\d+)E", r"\1.0E")
    if pc.any(pc.match_substring(texts, "n")).as_py():
        named = pc.replace_substring(pc.replace_substring(texts, "nan", "NaN"), "inf", "Infinity")
        texts = pc.if_else(pc.match_substring(texts, "n"), _quote(pc.replace_substring(named, "-NaN", "NaN")), texts)
    return texts


def _quote(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _escape(texts: pa.Array) -> pa.Array:
    """Escape the characters that JSON strings do not allow."""
    if not pc.any(pc.match_substring_regex(texts, _SPECIAL)).as_py():
        return texts
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    for code in range(32):
        if pc.any(pc.match_substring(texts, chr(code))).as_py():
            escaped = _CONTROLS.get(code) or f"u{code:04X}"
            texts = pc.replace_substring(texts, chr(code), f"\\{escaped}")
    return texts


def _to_latin1(array: pa.Array) -> pa.Array:
    """Return the texts whose Latin-1 encoding is the given bytes."""
    data, lengths = _read_bytes(array)
    wide = data >= 128
    sizes = wide.astype(np.int64) + 1
    ends = np.concatenate([[0], np.cumsum(sizes)])
    out = np.empty(int(ends[-1]), np.uint8)
    out[ends[:-1]] = np.where(wide, 0xC0 | (data >> 6), data)
    out[ends[:-1][wide] + 1] = 0x80 | (data[wide] & 0x3F)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return _make_texts(np.diff(ends[bounds]), out)


def _to_base64(array: pa.Array) -> pa.Array:
    data, lengths = _read_bytes(array)
    groups = -(-lengths // 3)
    starts = np.concatenate([[0], np.cumsum(groups * 3)])
    padded = np.zeros(int(starts[-1]), np.uint8)
    firsts = np.cumsum(lengths) - lengths
    padded[np.repeat(starts[:-1] - firsts, lengths) + np.arange(len(data))] = data
    a, b, c = padded[0::3], padded[1::3], padded[2::3]
    codes = np.stack([a >> 2, ((a & 3) << 4) | (b >> 4), ((b & 15) << 2) | (c >> 6), c & 63], axis=1).reshape(-1)
    out = _BASE64[codes]
    ends = np.cumsum(groups * 4)
    out[ends[lengths % 3 != 0] - 1] = ord("=")
    out[ends[lengths % 3 == 1] - 2] = ord("=")
    return _make_texts(groups * 4, out)


def _read_bytes(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of all values end to end, and their lengths; nulls have none."""
    filled = array.fill_null(b"") if array.null_count else array
    _, offsets, data = filled.buffers()
    bounds = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1].astype(np.int64)
    whole = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return whole[bounds[0] : bounds[-1]], np.diff(bounds)


def _make_texts(lengths: np.ndarray, data: np.ndarray) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
