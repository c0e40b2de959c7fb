from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hoodie_py.formats.parquet.bloom as bloom_module
from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.parquet.bloom import (
    DYNAMIC,
    MAX_BITS,
    SIMPLE,
    BloomBuilder,
    BloomFilter,
    BloomSettings,
    BloomShape,
)
from hoodie_py.formats.parquet.bloom_hashes import KeyBytes
from tests.corpus import case_folder, corpus_names
from tests.formats.blooms import build_bloom

KEYS = [f"k{i}" for i in range(35)]
UNICODE = ["a", "ab", "abc", "abcd", "é", "日本語", "\U0001f600", "naïve-ключ", "x" * 100, "\x7f\x80ÿ"]
SMALL = BloomSettings(10, 0.01, 20)
# What Java Hudi 1.2.0's BloomFilterFactory gave for the keys, settings and type.
HEAD, ROW = "/////wAAAAcBAAAAYAAAAAoAAAA", "////8AAAAHAQAAAGB"  # of a filter for ten keys, and of its rows
OF_JAVA = [
    (KEYS, SMALL, f"{HEAD}ZAAAAAv{ROW}bj7Xf/bv/m9567+3/////AAAABwEAAABg4M/v/b6N/ij+m34f"),
    (KEYS[:20], SMALL, f"{HEAD}KAAAAAv{ROW}bjBCP/Dh1m45qRmz/////AAAABwEAAABgwM7u5ZaFXgj+mTwc"),
    (KEYS[:21], SMALL, f"{HEAD}LAAAAAv{ROW}bjBCP/Lt3m85qR+z/////AAAABwEAAABgwM7u5ZaFXgj+mTwc"),
    (KEYS[:10], SMALL, f"{HEAD}KAAAAAf{ROW}bjBCP/Dh1m45qRmw="),
    (KEYS[:11], BloomSettings(10, 0.01, 25), f"{HEAD}BAAAAAv{ROW}bjBCP/Dh1m45qRmz/////AAAABwEAAABgAAQOAAAAAAAQCCAA"),
    (UNICODE, BloomSettings(10, 0.001, 100, dynamic=False), "/////wAAAAoBAAAAkKpdDV9mGB7cymVqRMV7tiNFGw=="),
]


@pytest.mark.parametrize(("keys", "settings", "text"), OF_JAVA)
def test_filters_of_java_contain_their_keys(keys: list[str], settings: BloomSettings, text: str) -> None:
    code = DYNAMIC if settings.dynamic else SIMPLE
    assert BloomFilter.from_text(text, code).may_contain(pa.array(keys)).all()
    bloom = build_bloom(pa.array(keys), settings)
    assert bloom.type_code == code
    if len(keys) <= settings.entries:
        assert bloom.to_text() == text


@cache
def java_files(name: str) -> tuple[pq.ParquetFile, ...]:
    return tuple(_java_files(name))


def _java_files(name: str) -> Iterator[pq.ParquetFile]:
    with zipfile.ZipFile(case_folder(name) / "table.zip") as archive:
        for path in archive.namelist():
            if path.endswith(".parquet") and "/.hoodie" not in path:
                yield pq.ParquetFile(io.BytesIO(archive.read(path)))


def test_filters_in_the_base_files_of_java_come_out_the_same() -> None:
    checked = 0
    for name in corpus_names():
        for file in java_files(name):
            footer = file.metadata.metadata or {}
            text = footer.get(b"org.apache.hudi.bloomfilter", b"").decode()
            if not text or "_hoodie_record_key" not in file.schema_arrow.names:
                continue
            code = footer.get(b"hoodie_bloom_filter_type_code", b"").decode() or None
            found = BloomFilter.from_text(text, code)
            assert found.to_text() == text
            if name.startswith(("flink_", "vectors_")) or name == "partition_equals_sign_mor_v6":
                continue  # made with other settings
            # The reference tables were made with filters for 100 keys, or with the defaults.
            settings = BloomSettings() if code else BloomSettings(100, dynamic=False)
            groups = [file.read_row_group(i, ["_hoodie_record_key"]) for i in range(file.num_row_groups)]
            keys = pa.chunked_array([chunk for group in groups for chunk in group.column(0).chunks], pa.string())
            assert found.may_contain(keys.combine_chunks()).all()
            if len(keys) <= settings.entries:
                assert build_bloom(keys, settings).to_text() == text
                checked += 1
    assert checked > 50


@given(
    st.lists(st.text(min_size=1, max_size=9), max_size=60),
    st.integers(0, 60),
    st.integers(1, 20),
    st.booleans(),
)
def test_batches_make_no_difference(keys: list[str], cut: int, entries: int, dynamic: bool) -> None:
    settings = BloomSettings(entries, 0.01, 30, dynamic=dynamic)
    whole = pa.array(keys, pa.string())
    builder = BloomBuilder(settings)
    builder.add(whole[:cut])
    builder.add(pa.chunked_array([whole[cut:]]))
    bloom = builder.finish()
    assert bloom.to_text() == build_bloom(whole, settings).to_text()
    assert BloomFilter.from_text(bloom.to_text(), bloom.type_code).may_contain(whole).all()


def add_by_the_definition(keys: list[str], bits: int, hashes: int) -> bytes:
    row = bytearray((bits + 7) // 8)
    for key in keys:
        h = 0
        for _ in range(hashes):
            h = murmur2(key.encode(), h)
            at = abs(h - (1 << 32) if h >> 31 else h) % bits
            row[at >> 3] |= 1 << (at & 7)
    return bytes(row)


@given(st.lists(st.text(max_size=9), max_size=60), st.integers(1, 20), st.booleans(), st.booleans())
def test_rows_follow_the_definition(keys: list[str], entries: int, dynamic: bool, fitted: bool) -> None:
    bloom = build_bloom(pa.array(keys, pa.string()), BloomSettings(entries, 0.01, 30, dynamic=dynamic, fitted=fitted))
    assert bloom.may_contain(pa.array(keys, pa.string())).all()
    if bloom.bits > 8:
        [row] = bloom.rows
        assert row.tobytes() == add_by_the_definition(keys, bloom.bits, bloom.hashes)


@pytest.mark.parametrize(
    ("keys", "least", "most"), [(100, 0, 1e-4), (250, 1e-4, 1e-3), (600, 0.02, 0.05), (850, 0.07, 0.12)]
)
@pytest.mark.parametrize("fitted", [True, False])
def test_a_filter_of_many_keys_lets_as_few_others_through_as_its_size_allows(
    keys: int, least: float, most: float, fitted: bool
) -> None:
    bloom = build_bloom(pa.array([f"in-{i}" for i in range(keys)]), BloomSettings(60, 1e-9, 100, fitted=fitted))
    assert bloom.bits == 4314  # of 100 keys
    assert len(bloom.rows) == 1
    found = bloom.may_contain(pa.array([f"out-{i}" for i in range(20_000)]))
    assert least <= found.mean() < most


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("batch", [100, 10_000])
def test_a_filter_that_would_exclude_too_few_keys_is_one_byte_that_excludes_none(dynamic: bool, batch: int) -> None:
    builder = BloomBuilder(BloomSettings(100, 1e-9, 200, dynamic=dynamic, fitted=True))
    keys = pa.array([f"in-{i}" for i in range(10_000)])
    for start in range(0, len(keys), batch):
        builder.add(keys[start : start + batch])
    bloom = builder.finish()
    assert bloom.type_code == (DYNAMIC if dynamic else SIMPLE)
    again = BloomFilter.from_text(bloom.to_text(), bloom.type_code)
    assert [row.tobytes() for row in again.rows] == [b"\xff"]
    assert again.may_contain(pa.array(["out", "", *KEYS])).all()


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 4000))
def test_keys_that_take_much_memory_are_hashed_early(sizes: list[int], most_waiting: int) -> None:
    keys = pa.array([f"key-{i}" for i in range(sum(sizes))], pa.string())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bloom_module, "_WAITING_BYTES", most_waiting)
        builder = BloomBuilder(BloomSettings(60, 1e-6, 100, fitted=True))
        for first, size in zip(np.cumsum([0, *sizes]).tolist(), sizes, strict=False):
            builder.add(keys[first : first + size])
        bloom = builder.finish()
    assert bloom.may_contain(keys).all()
    if bloom.bits > 8:
        found = bloom.may_contain(pa.array([f"out-{i}" for i in range(5000)]))
        assert found.mean() < 0.15


def test_keys_that_were_not_added_are_mostly_refused() -> None:
    bloom = build_bloom(pa.array([f"in-{i}" for i in range(1000)]), BloomSettings(1000, 0.01, 1000))
    found = bloom.may_contain(pa.array([f"out-{i}" for i in range(10_000)]))
    assert 0 < found.mean() < 0.02
    assert not BloomBuilder().finish().may_contain(pa.array(["a"])).any()


def test_defaults_are_those_of_java() -> None:
    assert BloomSettings().choose_shape(60_000) == BloomShape(2587966, 30, pytest.approx(1e-9, rel=0.01))
    head = "/////wAAAB4BACd9PgAA6mAAAAAAAAAAAf////8AAAAeAQAnfT4AAAAAAAA"
    assert build_bloom(pa.array([], pa.string())).to_text().startswith(head)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 25])
def test_a_fitted_filter_is_made_for_no_more_keys_than_there_are(count: int, dynamic: bool) -> None:
    settings = BloomSettings(10, 0.01, 20, dynamic=dynamic, fitted=True)
    keys = pa.array([f"key-{i}" for i in range(count)], pa.string())
    builder = BloomBuilder(settings)
    for start in range(0, count, 3):
        builder.add(keys.slice(start, 3))
    found = builder.finish()
    entries = max(1, min(count, 20 if dynamic else 10))
    want = build_bloom(keys, BloomSettings(entries, 0.01, 20, dynamic=dynamic))
    assert (found.bits, found.hashes) == (want.bits, want.hashes)
    assert all(np.array_equal(*rows) for rows in zip(found.rows, want.rows, strict=True))
    assert BloomFilter.from_text(found.to_text(), found.type_code).may_contain(keys).all()


def test_filters_too_large_for_a_footer_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="too large"):
        BloomSettings(MAX_BITS).choose_shape(1)
    most = BloomSettings(max_entries=MAX_BITS).choose_shape(MAX_BITS // 20)
    assert most is not None
    assert MAX_BITS - 100 < most.bits <= MAX_BITS


GOOD = base64.b64decode(OF_JAVA[0][2])
BROKEN = [
    (b"", None), (GOOD[:12], None), (GOOD[:-1], DYNAMIC), (GOOD[:20], DYNAMIC), (GOOD, SIMPLE), (GOOD + b"\0", DYNAMIC),
    (GOOD[:-25] + b"\0" * 25, DYNAMIC), (b"\0" * 40, None), (GOOD[:4] + b"\0\0\0\0" + GOOD[8:], DYNAMIC),
    (GOOD[:21] + b"\x7f\0\0\0" + GOOD[25:], DYNAMIC), (GOOD[:9] + b"\xff" * 4 + GOOD[13:], DYNAMIC),
]  # fmt: skip


@pytest.mark.parametrize(("data", "code"), BROKEN)
def test_broken_filters_are_refused(data: bytes, code: str | None) -> None:
    with pytest.raises((CorruptFileError, UnsupportedFeatureError)):
        BloomFilter.from_text(base64.b64encode(data).decode(), code)


def test_other_texts_and_types_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        BloomFilter.from_text("no base 64!")
    with pytest.raises(UnsupportedFeatureError):
        BloomFilter.from_text("", "DYNAMIC_V1")
    with pytest.raises(CorruptFileError):
        build_bloom(pa.array(["a", None]))


@given(st.binary(max_size=80), st.sampled_from([None, DYNAMIC]))
def test_any_bytes_are_read_or_refused(data: bytes, code: str | None) -> None:
    try:
        bloom = BloomFilter.from_text(base64.b64encode(GOOD[: len(data) % 30] + data).decode(), code)
    except HoodieError:
        return
    bloom.may_contain(pa.array(["a"]))


MASK = 0xFFFFFFFF
M = 0x5BD1E995


def murmur2(data: bytes, seed: int) -> int:
    """The definition, a byte at a time."""
    h = (seed ^ len(data)) & MASK
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * M & MASK
        k = (k ^ k >> 24) * M & MASK
        h = h * M & MASK ^ k
    if left := len(data) - whole:
        signed = [byte - 256 if byte > 127 else byte for byte in data]
        for i in range(left):
            h ^= signed[-1 - i] << 8 * i & MASK
        h = h * M & MASK
    h = (h ^ h >> 13) * M & MASK
    return h ^ h >> 15


def chains(keys: pa.Array, count: int) -> list[list[int]]:
    found = np.zeros((len(keys), count), np.uint32)
    seen = np.zeros(len(keys), int)
    for places, hashes in KeyBytes.of(keys).hash_chains(count):
        found[places] = np.stack(list(hashes), axis=1)
        seen[places] += 1
    assert (seen == 1).all()
    return found.tolist()


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(0, 3))
def test_chains_follow_the_definition(keys: list[str], skip: int) -> None:
    array = pa.array(keys, pa.string())[skip:]
    expected = []
    for key in keys[skip:]:
        h, chain = 0, []
        for _ in range(4):
            h = murmur2(key.encode(), h)
            chain.append(h)
        expected.append(chain)
    assert chains(array, 4) == expected
    assert chains(array.cast(pa.large_string()), 4) == expected


def test_many_and_long_keys_are_taken_in_chunks() -> None:
    keys = [f"key-{i}" for i in range(20_000)] + ["x" * 300_000, "y" * 299_999]
    found = chains(pa.array(keys), 1)
    for i in (0, 16_383, 16_384, 19_999, 20_000, 20_001):
        assert found[i] == [murmur2(keys[i].encode(), 0)]


def test_null_keys_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        chains(pa.array(["a", None]), 1)
