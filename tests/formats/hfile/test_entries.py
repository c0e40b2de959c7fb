"""Entries of HFiles; how writers of the metadata table lay them out is in ``test_hfile``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.hfile.entries import read_hfile
from tests.hfiles import write_hfile

SOME = [(b"a", b"one"), (b"b", b""), (b"c", b"three" * 20)]
DATA = write_hfile(SOME, schema="", created_ms=0)


def test_entries_come_in_the_order_of_the_file() -> None:
    assert read_hfile(memoryview(DATA)) == SOME
    assert read_hfile(write_hfile([], schema="", created_ms=0)) == []


@pytest.mark.parametrize("magic", [b"IDXLEAF2", b"METABLKc", b"BLMFBLK2", b"DATABLKE"])
def test_other_blocks_in_the_place_of_data_are_an_error(magic: bytes) -> None:
    with pytest.raises(CorruptFileError, match="where data should be"):
        read_hfile(DATA.replace(b"DATABLK*", magic))


def test_deletes_and_versions_are_refused() -> None:
    put = b"\xff" * 7 + b"\4"
    with pytest.raises(UnsupportedFeatureError, match="puts"):
        read_hfile(DATA.replace(put, b"\xff" * 7 + b"\x08"))
    with pytest.raises(UnsupportedFeatureError, match="versions"):
        read_hfile(DATA.replace(put + b"one\0", put + b"one\1"))


@given(st.integers(0, len(DATA) - 1))
def test_a_file_that_is_cut_short_is_an_error(size: int) -> None:
    with pytest.raises(CorruptFileError):
        read_hfile(DATA[:size])


@given(st.integers(0, len(DATA) * 8 - 1))
def test_a_flipped_bit_never_costs_more_than_an_error(bit: int) -> None:
    damaged = bytearray(DATA)
    damaged[bit // 8] ^= 1 << bit % 8
    try:
        found = read_hfile(bytes(damaged))
    except HoodieError:
        return
    assert len(found) == len(SOME)
