"""Codecs of HFile blocks: Hadoop's pieces in all their forms, and sizes that are not true."""

from __future__ import annotations

import gzip
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.hfile.blocks import GZIP, LZ4, NO_COMPRESSION, SNAPPY, ZSTD, check_codec, decompress
from tests.formats.hfile.layouts import COMPRESS, hadoop_pieces

PIECES = ((SNAPPY, "snappy"), (LZ4, "lz4_raw"), (ZSTD, "zstd"))
texts = st.binary(max_size=300) | st.builds(lambda some, times: some * times, st.binary(max_size=9), st.integers(0, 99))


@given(texts, st.sampled_from(sorted(COMPRESS)))
def test_what_was_compressed_comes_back(plain: bytes, codec: int) -> None:
    assert decompress(codec, COMPRESS[codec](plain), len(plain), offset=0) == plain


@given(st.binary(min_size=1, max_size=200), st.sampled_from(PIECES), st.integers(1, 50))
def test_several_groups_of_pieces(plain: bytes, codec: tuple[int, str], most: int) -> None:
    assert decompress(codec[0], hadoop_pieces(codec[1], plain, most), len(plain), offset=0) == plain


@pytest.mark.parametrize(("number", "name"), PIECES[:2])
def test_several_pieces_in_a_group(number: int, name: str) -> None:
    parts = [b"first " * 40, b"second", b"x" * 300]
    packed = [pa.Codec(name).compress(part).to_pybytes() for part in parts]
    data = struct.pack(">i", sum(map(len, parts))) + b"".join(struct.pack(">i", len(each)) + each for each in packed)
    assert decompress(number, data, sum(map(len, parts)), offset=0) == b"".join(parts)


def test_gzip_of_very_many_members_is_an_error() -> None:
    with pytest.raises(CorruptFileError):
        decompress(GZIP, gzip.compress(b"") * 100_000 + gzip.compress(b"x"), 1, offset=0)


def test_gzip_with_a_wrong_sum_is_an_error() -> None:
    packed = bytearray(gzip.compress(b"plain"))
    packed[-8] ^= 1
    with pytest.raises(CorruptFileError):
        decompress(GZIP, bytes(packed), 5, offset=0)


def test_gzip_of_several_members() -> None:
    assert decompress(GZIP, gzip.compress(b"one") + gzip.compress(b"two"), 6, offset=0) == b"onetwo"


@given(st.binary(min_size=1, max_size=100), st.sampled_from(sorted(COMPRESS)), st.integers(-5, 5).filter(bool))
def test_a_size_that_is_not_true_is_an_error(plain: bytes, codec: int, off: int) -> None:
    size = max(len(plain) + off, 1)
    packed = COMPRESS[codec](plain)
    if size == len(plain):
        return
    with pytest.raises(CorruptFileError):
        decompress(codec, packed, size, offset=0)


@given(st.binary(max_size=60), st.sampled_from(sorted(COMPRESS)), st.integers(0, 99))
def test_any_bytes_give_as_many_as_they_say_or_an_error(data: bytes, codec: int, size: int) -> None:
    try:
        assert len(decompress(codec, data, size, offset=0)) == size
    except HoodieError:
        return


def test_codecs_that_are_not_known_are_named() -> None:
    assert check_codec(NO_COMPRESSION) == NO_COMPRESSION
    for number in (0, 7, 99):
        with pytest.raises(UnsupportedFeatureError, match=f"number {number} "):
            check_codec(number)
