"""The Kryo subset of old delete blocks."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.deletes.kryo import KryoDelete, read_deletes
from tests.formats.log_writer import DELETE_CLASS, KEY_CLASS, KryoWriter, kryo_text


def name(text: str) -> str:
    """A class name or short text in hexadecimal: ASCII whose last byte has its high bit set."""
    raw = bytearray(text.encode())
    raw[-1] |= 0x80
    return raw.hex()


KEY_ARRAY = "0100" + name(f"[L{KEY_CLASS};") + "01"
DELETE_ARRAY = "0100" + name(f"[L{DELETE_CLASS};") + "01"
NEW_KEY = "0101" + name(KEY_CLASS) + "01"
NEW_DELETE = "0101" + name(DELETE_CLASS) + "01" + "0102" + name(KEY_CLASS) + "01"
NEXT_KEY = "010101"

# (deletes, bytes written out by hand)
TABLE = [
    ([], KEY_ARRAY + "01"),
    ([], DELETE_ARRAY + "01"),
    ([KryoDelete("k1", "p1", None, None)], KEY_ARRAY + "02" + NEW_KEY + "01" + name("p1") + "01" + name("k1")),
    # the second key's partition is a reference to object 2: the array is 0, the key 1
    (
        [KryoDelete("k1", "p1", None, None), KryoDelete("k2", "p1", None, None)],
        KEY_ARRAY + "03" + NEW_KEY + "01" + name("p1") + "01" + name("k1") + NEXT_KEY + "04" + "01" + name("k2"),
    ),
    ([KryoDelete("k1", None, None, None)], KEY_ARRAY + "02" + NEW_KEY + "00" + "01" + name("k1")),
    ([KryoDelete("k1", "", None, None)], KEY_ARRAY + "02" + NEW_KEY + "0181" + "01" + name("k1")),
    ([KryoDelete("k", "p1", None, None)], KEY_ARRAY + "02" + NEW_KEY + "01" + name("p1") + "01826b"),
    (
        [KryoDelete("\u00e9\u20ac", "p1", None, None)],
        KEY_ARRAY + "02" + NEW_KEY + "01" + name("p1") + "0183c3a9e282ac",
    ),
    (
        [KryoDelete("k1", "p1", "int", -1)],
        DELETE_ARRAY + "02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1") + "0201",
    ),
    (
        [KryoDelete("k1", "p1", "long", 64)],
        DELETE_ARRAY + "02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1") + "098001",
    ),
    (
        [KryoDelete("k1", "p1", "double", 1.5)],
        DELETE_ARRAY + "02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1") + "0a3ff8000000000000",
    ),
    (
        [KryoDelete("k1", "p1", "String", "k1")],  # the key's own text
        DELETE_ARRAY + "02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1") + "03" + "06",
    ),
    (
        [KryoDelete("k1", "p1", "decimal", Decimal("1.23"))],
        DELETE_ARRAY
        + "02"
        + NEW_DELETE
        + ("01" + name("p1") + "01" + name("k1"))
        + ("0103" + name("java.math.BigDecimal") + "01" + "027b" + "04"),
    ),
    (
        [KryoDelete("k1", "p1", "short", -2)],
        DELETE_ARRAY + "02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1") + "08fffe",
    ),
    (
        [KryoDelete("k1", "p1", "byte", -2)],
        DELETE_ARRAY + "02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1") + "06fe",
    ),
]


@pytest.mark.parametrize(("expected", "text"), TABLE)
def test_bytes(expected: list[KryoDelete], text: str) -> None:
    assert read_deletes(bytes.fromhex(text)) == expected


@pytest.mark.parametrize(("expected", "text"), TABLE)
def test_every_truncation_is_an_error(expected: list[KryoDelete], text: str) -> None:
    data = bytes.fromhex(text)
    for length in range(len(data)):
        with pytest.raises((CorruptFileError, UnsupportedFeatureError)):
            read_deletes(data[:length])
    with pytest.raises(CorruptFileError):
        read_deletes(data + b"\0")


@pytest.mark.parametrize(
    "text",
    [
        "0100" + name("java.lang.Runtime") + "01" + "01",
        "0100" + name("[Ljava.lang.ProcessBuilder;") + "01" + "01",
        "00",
        "02",
        "7f",
        KEY_ARRAY + "02" + "0101" + name("java.net.URL") + "01",
        DELETE_ARRAY
        + "02"
        + NEW_DELETE
        + "01"
        + name("p1")
        + "01"
        + name("k1")
        + "0103"
        + name("java.sql.Date")
        + "01",
        DELETE_ARRAY + "02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1") + "070061",  # a char
    ],
)
def test_other_classes_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="not supported"):
        read_deletes(bytes.fromhex(text))


@pytest.mark.parametrize(
    "text",
    [
        KEY_ARRAY + "ffffffff0f",  # four billion elements
        KEY_ARRAY + "00",  # a length of -1
        KEY_ARRAY + "ffffffffff0f",
        KEY_ARRAY + "02" + NEW_KEY + "01" + name("p1") + "00",  # no key
        KEY_ARRAY + "02" + NEW_KEY + "01" + name("p1") + "0180",  # a key of null
        KEY_ARRAY + "02" + NEW_KEY + "09",  # a reference to nothing
        KEY_ARRAY + "02" + NEW_KEY + "03" + "01" + name("k1"),  # a reference to the key as text
        KEY_ARRAY + "02" + NEW_KEY + "02" + "01" + name("k1"),  # a reference to the array as text
        KEY_ARRAY + "02" + NEW_KEY + "01" + "ffffffff7f",  # a long text
        KEY_ARRAY + "02" + NEW_KEY + "0182ff",
        KEY_ARRAY + "02" + NEW_KEY + "0182eda080",  # a lone surrogate
        KEY_ARRAY + "02" + "0105",  # a class name that was not given
        "0100" + name(f"[L{KEY_CLASS};") + "0201",
        DELETE_ARRAY + "02" + "0101" + name(DELETE_CLASS) + "01" + "00",
        DELETE_ARRAY
        + ("02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1"))
        + ("0103" + name("java.math.BigDecimal") + "01" + "027b" + "fe7f"),  # scale 8191
        DELETE_ARRAY
        + ("02" + NEW_DELETE + "01" + name("p1") + "01" + name("k1"))
        + ("0103" + name("java.math.BigDecimal") + "01" + "0104"),
    ],
)
def test_hostile_streams(text: str) -> None:
    with pytest.raises(CorruptFileError):
        read_deletes(bytes.fromhex(text))


TEXTS = st.text(st.characters(codec="utf-8"), max_size=100)
VALUES = st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False) | TEXTS
LONGS = st.tuples(st.just("long"), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.tuples(TEXTS, TEXTS | st.none(), VALUES | LONGS), max_size=8))
def test_what_is_written_is_read(records: list[tuple[str, str | None, Any]]) -> None:
    found = read_deletes(KryoWriter().deletes(records))
    plain = [(key, part, value[1] if isinstance(value, tuple) else value) for key, part, value in records]
    assert [(delete.key, delete.partition, delete.value) for delete in found] == plain


@given(st.text(st.characters(codec="utf-8"), min_size=60, max_size=10_000))
def test_long_texts(text: str) -> None:
    assert read_deletes(KryoWriter().keys([(text, "p1")]))[0].key == text
    assert kryo_text("x" * 63)[-1] & 0x80


@given(st.binary(max_size=60))
def test_junk_is_a_typed_error_or_deletes(junk: bytes) -> None:
    for start in (b"", bytes.fromhex(KEY_ARRAY), bytes.fromhex(DELETE_ARRAY + "02" + NEW_DELETE)):
        try:
            read_deletes(start + junk)
        except HoodieError:
            continue
