"""Deletes of one shape, read together, against stepping over them one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.formats.deletes import decoder as module
from hoodie_py.formats.deletes.decoder import OrderingKind, decode_deletes
from hoodie_py.formats.deletes.uniform import DecodedDeletes, decode_uniform_deletes
from tests.formats.log_writer import deletes

K = OrderingKind
_PAYLOAD = 8  # bytes in front of it: version, length
_KINDS = (K.NONE, K.INT, K.LONG, K.DATE, K.TIME_MICROS, K.TIMESTAMP_MICROS)


def even(content: bytes, count: int) -> DecodedDeletes | None:
    head = 1 if count < 64 else 2  # of the zigzag count
    return decode_uniform_deletes(content[_PAYLOAD:], head, count)


def slowly(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(module, "decode_uniform_deletes", lambda *_: None)
        return outcome(content)


def outcome(content: bytes) -> Any:
    try:
        found = decode_deletes(content)
    except HoodieError as error:
        return type(error)
    assert found.numbers is not None or any(K(kind) not in _KINDS for kind in found.kinds)
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
    if kind in (K.INT, K.DATE):
        span = max(span[0], -(2**31)), min(span[1], 2**31 - 1)
        span = span if span[0] <= span[1] else (1, 63)
    entries = data.draw(
        st.lists(st.tuples(texts, st.integers(*span)), min_size=1, max_size=70).map(
            lambda pairs: [(key, path, (kind, None if kind is K.NONE else number)) for key, number in pairs]
        )
    )
    content = deletes(entries)
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert outcome(content) == slowly(content, monkeypatch)


@pytest.mark.parametrize("kind", _KINDS)
def test_even_records_are_read_together(kind: OrderingKind) -> None:
    number = None if kind is K.NONE else 5
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
        [("a", "p", 1), ("a", "p", (K.LONG, 1))],
        [("a", "p", 1), ("a", "p", None)],
        [("a", "p", "x"), ("a", "p", "x")],
        [("x" * 300, "p", 1)],
        [("a", "p", (K.LONG, -(2**63)))],
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
