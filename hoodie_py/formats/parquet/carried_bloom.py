"""Carries the bloom filter of a base file over to the file that replaces it, so that only new keys are hashed.

Keys that the new file lacks do no harm: they only come through. But a filter that lacks a key hides its row from BLOOM
indexes, whose writers then insert the key a second time. So a filter is carried only if it shows no sign of damage: the
file's least and greatest key are in it, and as many bits are set as the file's rows would set. It must also be about as
small and as exact as a new filter. Everything else gets a new filter of all keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_texts, join_chunks
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.parquet.bloom import BloomFilter, BloomSettings
from hoodie_py.formats.parquet.bloom_hashes import KeyBytes
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY

_LEAST_ROWS = 10_000  # hashing fewer keys takes as long as parsing their filter
_MOST_TIMES_SIZE = 2
_MOST_TIMES_FPP = 10
_LEAST_SHARE = 0.98  # of the bits that the file's keys would set; chance and repeated keys set slightly fewer


def carry_filter(
    facts: Mapping[bytes, bytes], rows: int, keys: pa.Array | pa.ChunkedArray, settings: BloomSettings
) -> BloomFilter | None:
    """Return the filter of a base file with more keys; None if the new file needs a new one.

    A file with too many keys for a filter gets the one that excludes none.

    ``facts``: the file's key-value metadata. ``rows``: the number of its rows. ``keys``: strings, the keys that may be
    new. ``settings``: of a new filter.

    Raises:
        CorruptFileError: a key is null.
    """
    if settings.choose_shape(rows) is None:
        return BloomFilter.make_open(dynamic=settings.dynamic)
    found = _parse_whole_filter(facts, rows) if rows >= _LEAST_ROWS else None
    if found is None or not _is_as_good_as_new(found, rows, settings):
        return None
    added = join_chunks(keys) if isinstance(keys, pa.ChunkedArray) else keys
    new = int(np.count_nonzero(~found.may_contain(added)))
    carried = found.with_keys(KeyBytes.of(added))
    return carried if _is_as_good_as_new(carried, rows + new, settings) else None


def _parse_whole_filter(facts: Mapping[bytes, bytes], rows: int) -> BloomFilter | None:
    """Return the filter that covers all keys of a file; None if there is none, or it is damaged."""
    text, kind, least, greatest = (facts.get(name.encode()) for name in (BLOOM_KEY, BLOOM_TYPE_KEY, MIN_KEY, MAX_KEY))
    if text is None or least is None or greatest is None:
        return None
    try:
        found = BloomFilter.from_text(text.decode("latin-1"), None if kind is None else kind.decode("latin-1"))
        ends = from_texts([least.decode(), greatest.decode()], pa.string())
    except (CorruptFileError, UnsupportedFeatureError, UnicodeDecodeError):
        return None
    is_whole = sum(found.count_set_bits()) >= _LEAST_SHARE * _expect_set_bits(found, rows)
    return found if is_whole and found.may_contain(ends).all() else None


def _expect_set_bits(bloom: BloomFilter, keys: int) -> float:
    """Return about how many bits so many keys set. A dynamic filter fills row after row, the last one with the rest."""
    expected = 0.0
    for left in range(len(bloom.rows), 0, -1):
        here = keys if left == 1 or bloom.per_row is None else min(max(bloom.per_row, 0), keys)
        expected += bloom.bits * (1 - math.exp(-bloom.hashes * here / bloom.bits))
        keys -= here
    return expected


def _is_as_good_as_new(bloom: BloomFilter, keys: int, settings: BloomSettings) -> bool:
    """Whether a filter of a file of so many keys has about the size and the exactness of a new one."""
    new = settings.choose_shape(keys)
    if new is None or settings.dynamic != (bloom.per_row is not None):
        return False
    excluded = math.prod(1 - (each / bloom.bits) ** bloom.hashes for each in bloom.count_set_bits())
    return len(bloom.rows) * bloom.bits <= _MOST_TIMES_SIZE * new.bits and 1 - excluded <= _MOST_TIMES_FPP * new.fpp
