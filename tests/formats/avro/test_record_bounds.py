"""Finding records by their lengths: many parts at once against one by one, also where places only look like records."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.avro.columnar_cursor import BACK, FRONT, Misfit
from hoodie_py.formats.avro.record_bounds import Stretch, find_record_bounds

BEGINNING = b"\x02\x2220260101000000000"


def stretches_of(*blocks: list[bytes]) -> tuple[bytes, list[Stretch]]:
    data = bytes(FRONT)
    found: list[Stretch] = []
    for records in blocks:
        data += b"header"
        start = len(data)
        data += b"".join(struct.pack(">i", len(record)) + record for record in records)
        found.append(Stretch(start, len(data), len(records)))
    return data + bytes(BACK), found


def one_by_one(data: bytes, stretches: list[Stretch]) -> tuple[list[int], list[int]]:
    starts: list[int] = []
    ends: list[int] = []
    for stretch in stretches:
        pos = stretch.start
        for _ in range(stretch.count):
            (length,) = struct.unpack_from(">i", data, pos)
            starts.append(pos + 4)
            pos += 4 + length
            ends.append(pos)
        assert pos == stretch.stop
    return starts, ends


def see(data: bytes, stretches: list[Stretch]) -> None:
    starts, ends = find_record_bounds(data, stretches)
    assert (starts.tolist(), ends.tolist()) == one_by_one(data, stretches)


def some_records(pick: random.Random, count: int, *, beginning: bytes = BEGINNING, traps: bool = False) -> list[bytes]:
    records = []
    for _ in range(count):
        body = pick.randbytes(pick.choice([0, 1, 30, 200, 200, 300, 2000 if pick.random() < 0.02 else 100]))
        if traps and pick.random() < 0.5:
            body += pick.choice([b"\0\0\0\x20", b"\0\0\0\0", b"\xff" * 4]) + beginning + pick.randbytes(40)
        records.append(beginning + body)
    return records


@given(st.integers(), st.lists(st.sampled_from([1, 2, 127, 128, 700, 3000]), min_size=1, max_size=4), st.booleans())
def test_as_one_by_one(seed: int, counts: list[int], traps: bool) -> None:
    pick = random.Random(seed)
    see(*stretches_of(*(some_records(pick, count, traps=traps) for count in counts)))


@pytest.mark.parametrize("beginning", [b"", b"\x02", b"\0\0\0\0\0\0"])
def test_records_that_do_not_begin_alike(beginning: bytes) -> None:
    pick = random.Random(1)
    see(*stretches_of(some_records(pick, 2000, beginning=beginning), [b""] * 500, [b"\0"] * 500, [b"\0" * 9] * 500))


def test_a_beginning_that_changes_half_way() -> None:
    pick = random.Random(2)
    later = BEGINNING.replace(b"2026", b"2027")
    see(*stretches_of(some_records(pick, 900) + some_records(pick, 900, beginning=later) + some_records(pick, 900)))


@given(st.integers(), st.integers(150, 900), st.data())
def test_a_wrong_length_is_seen(seed: int, count: int, data: st.DataObject) -> None:
    pick = random.Random(seed)
    whole, (stretch,) = stretches_of(some_records(pick, count))
    damaged = bytearray(whole)
    starts, _ = one_by_one(whole, [stretch])
    place = starts[data.draw(st.integers(0, count - 1))] - 4 + data.draw(st.integers(0, 3))
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Misfit):
        find_record_bounds(bytes(damaged), [stretch])


def test_a_wrong_count_is_seen() -> None:
    data, (stretch,) = stretches_of(some_records(random.Random(3), 400))
    for count in (399, 401):
        with pytest.raises(Misfit):
            find_record_bounds(data, [Stretch(stretch.start, stretch.stop, count)])
    for stop in (stretch.stop - 1, stretch.stop + 1):
        with pytest.raises(Misfit):
            find_record_bounds(data, [Stretch(stretch.start, stop, 400)])


def test_most_parts_are_proven_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[int] = []

    def counted(data: bytes, pos: int, stop: int) -> np.ndarray:
        walked.append(stop - pos)
        raise AssertionError

    monkeypatch.setattr("hoodie_py.formats.avro.record_bounds._walk", counted)
    see(*stretches_of(some_records(random.Random(4), 5000)))
    assert not walked
