"""Delete blocks of versions 1, 2 and 3.

Deletes of one shape, read together, against stepping over them one by one.
"""

from __future__ import annotations

import struct
import time
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.deletes import decoder as module
from hoodie_py.formats.deletes.alike import (
    DecodedDeletes,
    DeleteRun,
    decode_deletes_of_one_path,
    decode_uniform_deletes,
)
from hoodie_py.formats.deletes.decoder import (
    DeleteRecords,
    OrderingKind,
    decode_deletes,
    decode_deletes_together,
)
from hoodie_py.formats.log.framing import BlockType
from tests.formats.log_writer import KryoWriter, delete_content, deletes, varint
from tests.formats.real_logs import real_blocks

K = OrderingKind

# (ordering value, its bytes in hexadecimal)
TABLE: list[tuple[tuple[OrderingKind, Any], str]] = [
    ((K.NONE, None), "00"),
    ((K.BOOLEAN, True), "0201"),
    ((K.INT, -1), "0401"),
    ((K.INT, 2**31 - 1), "04feffffff0f"),
    ((K.LONG, 0), "0600"),
    ((K.LONG, -(2**63)), "06ffffffffffffffffff01"),
    ((K.FLOAT, 1.5), "080000c03f"),
    ((K.DOUBLE, -0.0), "0a0000000000000080"),
    ((K.BYTES, b"\x00\xff"), "0c0400ff"),
    ((K.STRING, "\u00e9"), "0e04c3a9"),
    ((K.DATE, -1), "1001"),
    ((K.DECIMAL, Decimal("0.000000000000123")), "12027b"),
    ((K.DECIMAL, Decimal("-0.000000000000001")), "1202ff"),
    ((K.TIME_MICROS, 1), "1402"),
    ((K.TIMESTAMP_MICROS, -1), "1601"),
    ((K.ARRAY, ()), "180200"),
    ((K.ARRAY, ((K.LONG, 1), (K.NONE, None), (K.INT, 0), (K.STRING, "a"))), "18020806020004000e026100"),
]


def rows(records: DeleteRecords) -> list[tuple[str, OrderingKind, Any]]:
    assert len(records) == len(records.keys) == len(records.kinds) == len(records.values)
    records.keys.validate(full=True)
    kinds = [K(kind) for kind in records.kinds]
    return list(zip(records.keys.to_pylist(), kinds, records.values, strict=True))


@pytest.mark.parametrize(("ordering", "text"), TABLE)
def test_bytes_of_an_ordering_value(ordering: tuple[OrderingKind, Any], text: str) -> None:
    payload = bytes.fromhex("02" + "02026b" + "00" + text + "00")
    assert deletes([("k", None, ordering)]) == delete_content(3, payload)
    records = decode_deletes(memoryview(delete_content(3, payload)))
    assert rows(records) == [("k", *ordering)]
    assert records.kinds.dtype == np.int8
    if ordering[0] in (K.FLOAT, K.DOUBLE):
        assert struct.pack("d", records.values[0]) == struct.pack("d", ordering[1])


def test_an_array_without_content_is_no_ordering_value() -> None:
    assert rows(decode_deletes(delete_content(3, bytes.fromhex("0202026b00180000")))) == [("k", K.NONE, None)]


def test_a_local_date_stands_where_an_array_would_in_an_array() -> None:
    payload = bytes.fromhex("0202026b0018020218260000")
    assert rows(decode_deletes(delete_content(3, payload))) == [("k", K.ARRAY, ((K.DATE, 19),))]


def test_int_zero_means_no_ordering_value_and_other_zeros_do_not() -> None:
    zeros: list[Any] = [0, (K.LONG, 0), 0.0, "0", (K.DATE, 0), False, [0, 0]]
    found = rows(decode_deletes(deletes([("k", "p", zero) for zero in zeros])))
    assert [kind for _, kind, _ in found] == [K.NONE, K.LONG, K.DOUBLE, K.STRING, K.DATE, K.BOOLEAN, K.ARRAY]
    assert found[0] == ("k", K.NONE, None)


def test_keys_are_kept_in_order() -> None:
    keys = ["", "b", "a", "\U0001f600", "a", "x" * 300]
    assert [k for k, _, _ in rows(decode_deletes(deletes([(k, "p", 1) for k in keys])))] == keys
    assert rows(decode_deletes(deletes([]))) == []


def test_deletes_in_several_blocks_of_the_array() -> None:
    one = bytes.fromhex("02026b00" + "0402")
    payload = b"\2" + one + varint(-2) + varint(2 * len(one)) + one + one + b"\0"
    assert rows(decode_deletes(delete_content(3, payload))) == [("k", K.INT, 1)] * 3


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "02",
        "0200000000",  # no key
        "0204026b000000",  # branch 2 of a key
        "0201026b000000",  # branch -1
        "0202016b000000",  # key of length -1
        "0202fe7f6b000000",
        "020202ff000000",  # not UTF-8
        "0202026b000000" + "00",  # left over
        "0202026b00" + "04feffffff1f" + "00",  # an int of 33 bits
        "0202026b00" + "06" + "80" * 11 + "0000",
        "0202026b00" + "06ffffffffffffffffff02" + "00",  # a long of 65 bits
        "0202026b00" + "0202" + "00",  # a boolean of 2
        "0202026b00" + "0e02ff" + "00",
        "0202026b00" + "1200" + "00",  # a decimal of no bytes
        "0202026b00" + "12c001" + "7f" * 96 + "00",
        "0202026b00" + "0affff" + "00",
        "0202026b00" + "1802feffffffff0f00" + "00",
        "feffffffffffffffff01",
        "ffffffffffffffffff0100",
    ],
)
def test_hostile_payloads(payload: str) -> None:
    with pytest.raises(CorruptFileError):
        decode_deletes(delete_content(3, bytes.fromhex(payload)))


@pytest.mark.parametrize(
    "payload", ["0202026b001a00", "0202026b000100", "0202026b0018020419000000", "0202026b00180202010000"]
)
def test_unknown_ordering_types(payload: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        decode_deletes(delete_content(3, bytes.fromhex(payload)))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", CorruptFileError),
        (b"\0\0\0\3\0\0\0", CorruptFileError),
        (struct.pack(">iib", 3, 2, 0), CorruptFileError),
        (struct.pack(">iib", 3, -1, 0), CorruptFileError),
        (struct.pack(">iibb", 3, 1, 0, 0), CorruptFileError),
        (delete_content(0, b"\0"), UnsupportedFeatureError),
        (delete_content(4, b"\0"), UnsupportedFeatureError),
    ],
)
def test_frames_that_do_not_add_up(content: bytes, error: type[HoodieError]) -> None:
    with pytest.raises(error):
        decode_deletes(content)


def test_counts_beyond_the_bytes_are_refused_at_once() -> None:
    started = time.process_time()
    with pytest.raises(CorruptFileError):
        decode_deletes(delete_content(3, varint(1 << 40) + bytes(1000)))
    assert time.process_time() - started < 1


KRYO_ORDERINGS: list[tuple[Any, OrderingKind, Any]] = [
    (None, K.NONE, None),
    (0, K.NONE, None),
    (7, K.INT, 7),
    (-(2**31), K.INT, -(2**31)),
    (("long", 0), K.LONG, 0),
    (("long", 2**63 - 1), K.LONG, 2**63 - 1),
    (("long", -(2**63)), K.LONG, -(2**63)),
    (("float", 1.5), K.FLOAT, 1.5),
    (2.5, K.DOUBLE, 2.5),
    ("text", K.STRING, "text"),
    (True, K.BOOLEAN, True),
    (Decimal("-12.345"), K.DECIMAL, Decimal("-12.345")),
]


def test_version_2_holds_typed_ordering_values() -> None:
    payload = KryoWriter().deletes([(f"key{i}", "part", value) for i, (value, _, _) in enumerate(KRYO_ORDERINGS)])
    found = rows(decode_deletes(delete_content(2, payload)))
    assert found == [(f"key{i}", kind, value) for i, (_, kind, value) in enumerate(KRYO_ORDERINGS)]


def test_version_1_holds_keys_alone() -> None:
    payload = KryoWriter().keys([("a", "p"), ("b", "p"), ("a", None)])
    assert rows(decode_deletes(delete_content(1, payload))) == [(k, K.NONE, None) for k in "aba"]


ORDERINGS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=10)
    | st.binary(max_size=10)
    | st.decimals(-(10**12), 10**12, places=15),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=1,
)


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=9), st.none() | st.just("p"), ORDERINGS)))
def test_what_is_written_is_read(records: list[tuple[str, str | None, Any]]) -> None:
    found = decode_deletes(deletes(records))
    assert found.keys.to_pylist() == [key for key, _, _ in records]
    for value, (_, _, written) in zip(found.values, records, strict=True):
        if isinstance(written, list):
            assert [item for _, item in value] == written
        elif not (isinstance(written, int) and written == 0):
            assert value == written


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.just((K.DATE, -5)), min_size=1, max_size=5),
    st.integers(40, 60),
    st.sampled_from([3, 200]),
)
def test_many_integers_are_read_as_few_are(written: list[Any], count: int, size: int) -> None:
    records = [(f"{i:0{size}}", "p", written[i % len(written)]) for i in range(count)]
    together = decode_deletes(deletes(records))
    alone = [row for record in records for row in rows(decode_deletes(deletes([record])))]
    assert rows(together) == alone
    assert together.numbers is not None
    assert together.numbers.tolist() == [value or 0 for value in together.values]


def test_one_damaged_integer_among_many() -> None:
    good, bad = bytes.fromhex("0202026b00" + "0602")[1:], bytes.fromhex("02026b00" + "06ffffffffffffffffff02")
    payload = varint(100) + good * 60 + bad + good * 39 + b"\0"
    with pytest.raises(CorruptFileError, match="64 bits") as caught:
        decode_deletes(delete_content(3, payload))
    assert caught.value.where["offset"] == payload.index(bad) + 5


@given(st.sampled_from([1, 2, 3]), st.binary(max_size=80))
def test_junk_is_an_error_or_deletes(version: int, junk: bytes) -> None:
    start = {1: KryoWriter().keys([])[:-1], 2: KryoWriter().deletes([])[:-1], 3: b""}[version]
    for payload in (junk, start + junk):
        try:
            rows(decode_deletes(delete_content(version, payload)))
        except HoodieError:
            continue


def test_real_blocks_truncated_and_flipped() -> None:
    blocks = [block for block in real_blocks() if block.type is BlockType.DELETE]
    assert sum(len(decode_deletes(block.content)) for block in blocks)
    for block in sorted(blocks, key=lambda found: found.size)[:60:3]:
        content = bytes(block.content)
        for length in range(len(content)):
            with pytest.raises(CorruptFileError):
                decode_deletes(content[:length])
        for place in range(0, len(content), 3):
            flipped = bytearray(content)
            flipped[place] ^= 1 << place % 8
            try:
                rows(decode_deletes(bytes(flipped)))
            except HoodieError:
                continue


def together(contents: list[bytes]) -> list[list[tuple[str, OrderingKind, Any]]] | None:
    """Decode contents in one go and give the rows of each."""
    joint = decode_deletes_together(contents)
    if joint is None:
        return None
    assert len(joint.counts) == len(contents)
    found = rows(joint.records)
    stops = list(accumulate(joint.counts))
    assert len(found) == stops[-1]
    return [found[stop - count : stop] for stop, count in zip(stops, joint.counts, strict=True)]


RECORDS = st.lists(
    st.tuples(st.text(st.characters(codec="utf-8"), max_size=9), st.none() | st.just("p"), ORDERINGS), max_size=4
)


@given(st.lists(RECORDS, min_size=1, max_size=5))
def test_blocks_together_are_blocks_alone(blocks: list[list[tuple[str, str | None, Any]]]) -> None:
    contents = [deletes(records) for records in blocks]
    assert together(contents) == [rows(decode_deletes(content)) for content in contents]


@given(st.binary(max_size=60), st.integers(0, 2))
def test_one_damaged_block_is_left_for_each_alone(junk: bytes, place: int) -> None:
    contents = [deletes([("a", "p", 1)]), deletes([("b", None, "x"), ("c", "p", None)])]
    contents.insert(place, delete_content(3, junk))
    try:
        alone = [rows(decode_deletes(content)) for content in contents]
    except HoodieError:
        assert together(contents) is None
    else:
        assert together(contents) == alone


def test_a_delete_that_reaches_into_the_next_block_is_damage() -> None:
    record = bytes.fromhex("02026b00" + "0402")
    short, rest = varint(2) + record, record + b"\0"
    assert together([delete_content(3, short + rest)]) == [[("k", K.INT, 1)] * 2]
    assert together([delete_content(3, short), delete_content(3, rest)]) is None


def test_what_cannot_be_decoded_together() -> None:
    good = deletes([("a", "p", 1)])
    kryo = delete_content(2, KryoWriter().deletes([("k", "p", 1)]))
    for other in (kryo, b"", b"\0\0\0\3", delete_content(4, b"\0"), good[:-1], good + b"\0"):
        assert together([good, other]) is None


def test_real_blocks_together() -> None:
    contents = [bytes(block.content) for block in real_blocks() if block.type is BlockType.DELETE]
    avro = [content for content in contents if content[3] == 3]
    assert len(avro) > 20
    assert together(avro) == [rows(decode_deletes(content)) for content in avro]


KEY = OrderingKind
_PAYLOAD = 8  # bytes in front of it: version, length
_KINDS = (KEY.NONE, KEY.INT, KEY.LONG, KEY.DATE, KEY.TIME_MICROS, KEY.TIMESTAMP_MICROS)


def even(content: bytes, count: int) -> DecodedDeletes | None:
    head = 1 if count < 64 else 2  # of the zigzag count
    return decode_uniform_deletes(content[_PAYLOAD:], head, count)


def slowly(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(module, "decode_uniform_deletes", lambda *_: None)
        patch.setattr(module, "decode_deletes_of_one_path", lambda *_: None)
        return outcome(content)


def of_one_path(blocks: list[bytes], counts: list[int]) -> DecodedDeletes | None:
    """Decode blocks of fewer than 64 deletes each, whose counts take one byte."""
    payloads = [content[_PAYLOAD:] for content in blocks]
    ends = accumulate(map(len, payloads))
    runs = [
        DeleteRun(end - len(payload) + 1, count, end - (count > 0))
        for payload, count, end in zip(payloads, counts, ends, strict=True)
    ]
    return decode_deletes_of_one_path(b"".join(payloads), runs)


PLAIN = st.one_of(
    st.none(),
    st.integers(-(2**31), 2**31 - 1),
    st.tuples(st.sampled_from([KEY.LONG, KEY.TIME_MICROS, KEY.TIMESTAMP_MICROS]), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(KEY.DATE), st.integers(-(2**31), 2**31 - 1)),
)
KEYS = st.text("ab\u00e9\0\x02\x04p", max_size=30)
PLAIN_BLOCKS = st.lists(st.lists(st.tuples(KEYS, PLAIN), max_size=20), min_size=1, max_size=4)


@given(st.sampled_from(["", "p", "part=\u00e9", "\x02\0"]), PLAIN_BLOCKS)
def test_deletes_of_one_path_are_the_deletes_one_by_one(path: str, blocks: list[list[tuple[str, Any]]]) -> None:
    contents = [deletes([(key, path, value) for key, value in block]) for block in blocks]
    found = of_one_path(contents, [len(block) for block in blocks])
    text = path.encode()
    seen = b"".join(content[_PAYLOAD:] for content in contents).count(bytes([2, 2 * len(text)]) + text)
    count = sum(map(len, blocks))
    assert (found is None) == (not count or seen != count)  # keys and integers may look like the path
    if found is None:
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        slow = [slowly(content, monkeypatch) for content in contents]
    assert found.keys.to_pylist() == [key for keys, *_ in slow for key in keys]
    assert found.kinds.tolist() == [kind for _, kinds, *_ in slow for kind in kinds]
    assert found.numbers.tolist() == [number for *_, numbers in slow for number in numbers]


@given(st.sampled_from(["", "region=r0"]), st.data())
def test_any_damage_to_deletes_of_one_path_comes_to_the_same(path: str, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(KEYS, PLAIN), min_size=1, max_size=8))
    content = bytearray(deletes([(key, path, value) for key, value in pairs]))
    content[data.draw(st.integers(_PAYLOAD, len(content) - 1))] = data.draw(st.integers(0, 255))
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert outcome(bytes(content)) == slowly(bytes(content), monkeypatch)
        assert together([bytes(content)] * 2) == slow_together([bytes(content)] * 2, monkeypatch)


def slow_together(contents: list[bytes], monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(module, "decode_deletes_of_one_path", lambda *_: None)
        return together(contents)


def test_keys_of_many_lengths_are_read_together() -> None:
    pairs = [(f"key-{i * i}", (KEY.LONG, 1 << i)) for i in range(40)]
    found = of_one_path([deletes([(key, "region=r0", value) for key, value in pairs])] * 3, [40] * 3)
    assert found is not None
    assert found.keys.to_pylist() == [key for key, _ in pairs] * 3
    assert found.numbers.tolist() == [value for _, (_, value) in pairs] * 3


def outcome(content: bytes) -> Any:
    try:
        found = decode_deletes(content)
    except HoodieError as error:
        return type(error)
    assert found.numbers is not None or any(KEY(kind) not in _KINDS for kind in found.kinds)
    numbers = None if found.numbers is None else found.numbers.tolist()
    return found.keys.to_pylist(), found.kinds.tolist(), found.values, numbers


@given(
    st.sampled_from(_KINDS),
    st.integers(0, 5),
    st.sampled_from([None, "", "p", "part=\u00e9"]),
    st.sampled_from([(1, 63), (-64, 63), (64, 8191), (2**40, 2**41 - 1), (-(2**61), -(2**60)), (0, 1)]),
    st.data(),
)
def test_reads_what_one_by_one_gives(
    kind: OrderingKind, width: int, path: str | None, span: tuple[int, int], data: st.DataObject
) -> None:
    texts = st.text("ab\u007f", min_size=width, max_size=width)
    if kind in (KEY.INT, KEY.DATE):
        span = max(span[0], -(2**31)), min(span[1], 2**31 - 1)
        span = span if span[0] <= span[1] else (1, 63)
    entries = data.draw(
        st.lists(st.tuples(texts, st.integers(*span)), min_size=1, max_size=70).map(
            lambda pairs: [(key, path, (kind, None if kind is KEY.NONE else number)) for key, number in pairs]
        )
    )
    content = deletes(entries)
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert outcome(content) == slowly(content, monkeypatch)


@pytest.mark.parametrize("kind", _KINDS)
def test_even_records_are_read_together(kind: OrderingKind) -> None:
    number = None if kind is KEY.NONE else 5
    found = even(deletes([(f"k{i:02}", "p", (kind, number)) for i in range(70)]), 70)
    assert found is not None
    assert found.keys.to_pylist() == [f"k{i:02}" for i in range(70)]
    assert set(found.kinds.tolist()) == {int(kind)}
    assert set(found.numbers.tolist()) == {number or 0}


@pytest.mark.parametrize(
    "entries",
    [
        [("a", "p", 1), ("ab", "p", 1)],
        [("a", "p", 1), ("a", "pp", 1)],
        [("a", "p", 1), ("a", None, 1)],
        [("a", "p", 1), ("a", "p", 64)],
        [("a", "p", 1), ("a", "p", (KEY.LONG, 1))],
        [("a", "p", 1), ("a", "p", None)],
        [("a", "p", "x"), ("a", "p", "x")],
        [("x" * 300, "p", 1)],
        [("a", "p", (KEY.LONG, -(2**63)))],
    ],
    ids=range(9),
)
def test_other_shapes_are_left_alone(entries: list[Any]) -> None:
    content = deletes(entries)
    assert even(content, len(entries)) is None
    assert len(decode_deletes(content)) == len(entries)


@given(st.binary(max_size=60), st.integers(1, 5))
def test_any_bytes_come_to_the_same(noise: bytes, count: int) -> None:
    content = deletes([("key", "p", 7)] * count)
    with pytest.MonkeyPatch.context() as monkeypatch:
        for at in range(_PAYLOAD, len(content)):
            damaged = content[:at] + noise[:1] + content[at + 1 :]
            if len(damaged) == len(content):
                assert outcome(damaged) == slowly(damaged, monkeypatch)


def test_keys_must_be_text() -> None:
    content = bytearray(deletes([("abc", "p", 1), ("abd", "p", 1)]))
    content[content.index(b"abd")] = 0xFF
    with pytest.raises(CorruptFileError, match="UTF-8"):
        decode_deletes(bytes(content))
