"""Files that cannot hold a key are left out, files that do never."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.parquet.bloom import BloomSettings
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY, KeyRange
from hoodie_py.reader.base.key_filter import KeyFilter
from tests.formats.blooms import build_bloom

SMALL = BloomSettings(entries=100, fpp=1e-6)
KEYS = st.text(st.sampled_from("ab0é\uffee\U0001f600"), max_size=4)


def _footer(keys: list[str], said: Mapping[str, str] | None = None, rows: int | None = None) -> pq.FileMetaData:
    """The footer of a file with some keys, which says what Hudi's writers say unless given otherwise."""
    if said is None:
        bounds = KeyRange()
        bounds.add(pa.array(keys, pa.string()))
        bloom = build_bloom(pa.array(keys, pa.string()), SMALL)
        said = {
            MIN_KEY: bounds.least or "",
            MAX_KEY: bounds.greatest or "",
            BLOOM_KEY: bloom.to_text(),
            BLOOM_TYPE_KEY: bloom.type_code,
        }
    table = pa.table({"n": pa.nulls(len(keys) if rows is None else rows, pa.int8())})
    target = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(dict(said)), target)
    return pq.read_metadata(pa.BufferReader(target.getvalue()))


def _may_hold(keys: KeyFilter, footer: pq.FileMetaData) -> bool:
    return keys.may_hold(footer.metadata or {}, footer.num_rows)


@given(st.lists(KEYS, min_size=1, unique=True), st.lists(KEYS, min_size=1, unique=True), st.sampled_from([1, 10_000]))
@settings(max_examples=200)
def test_a_file_with_a_wanted_key_stays(stored: list[str], wanted: list[str], rows: int) -> None:
    found = _may_hold(KeyFilter(pa.array(wanted, pa.string())), _footer(stored, rows=rows))
    assert found or not set(stored) & set(wanted)


def test_a_file_without_a_key_in_its_range_is_left_out() -> None:
    wanted = KeyFilter(pa.array([f"k{number:04}" for number in range(1000)]))
    assert not _may_hold(wanted, _footer(["a", "j"]))
    assert not _may_hold(wanted, _footer(["k0010a", "k0010b"]))  # between two keys
    assert _may_hold(wanted, _footer(["k0010", "k0011"]))
    assert _may_hold(wanted, _footer(["k0999x"], {MIN_KEY: "k0999", MAX_KEY: "k0999x"}))


def test_a_range_goes_by_java_order() -> None:
    """Of two keys that Java sorts the other way round than their bytes, the first bounds the range from below."""
    said = {MIN_KEY: "\U0001f600", MAX_KEY: "\uffee"}
    assert _may_hold(KeyFilter(pa.array(["\U0001f600a"])), _footer(["x"], said))
    assert not _may_hold(KeyFilter(pa.array(["\uffeea"])), _footer(["x"], said))


def test_few_keys_are_looked_up_in_the_bloom_filter() -> None:
    stored = [f"k{number:03}" for number in range(0, 100, 2)]
    footer = _footer(stored, rows=10_000)
    assert not _may_hold(KeyFilter(pa.array(["k001", "k003"])), footer)
    assert _may_hold(KeyFilter(pa.array(["k001", "k002"])), footer)
    only = build_bloom(pa.array(stored), SMALL)
    said = {BLOOM_KEY: only.to_text(), BLOOM_TYPE_KEY: only.type_code}
    assert not _may_hold(KeyFilter(pa.array(["zzz"])), _footer(stored, said, rows=10_000))


@pytest.mark.parametrize("said", [{}, {MIN_KEY: "a"}, {BLOOM_KEY: "AAAA", BLOOM_TYPE_KEY: "NEW_KIND"}])
def test_a_footer_that_says_nothing_leaves_the_file_in(said: dict[str, str]) -> None:
    assert _may_hold(KeyFilter(pa.array(["x"])), _footer(["y"], said, rows=10_000))


def test_a_damaged_bloom_filter_is_an_error() -> None:
    with pytest.raises(CorruptFileError, match="Base64"):
        _may_hold(KeyFilter(pa.array(["x"])), _footer(["y"], {BLOOM_KEY: "?!", BLOOM_TYPE_KEY: "SIMPLE"}, rows=10_000))


@given(st.lists(st.lists(KEYS, max_size=3), max_size=5), st.sets(KEYS, min_size=1, max_size=80))
def test_many_ranges_at_once(files: list[list[str]], wanted: set[str]) -> None:
    """A file stays exactly if a key is between its ends in Java's order, or an end is not known."""
    ends: list[tuple[str | None, str | None]] = []
    for keys in files:
        bounds = KeyRange()
        bounds.add(pa.array(keys, pa.string()))
        ends.append((bounds.least, bounds.greatest))
    least, greatest = (pa.array([each[at] for each in ends], pa.string()) for at in (0, 1))
    found = KeyFilter(pa.array(sorted(wanted))).may_be_between(least, greatest).tolist()

    def order(text: str) -> bytes:
        return text.encode("utf-16-be")

    assert found == [
        low is None or high is None or any(order(low) <= order(key) <= order(high) for key in wanted)
        for low, high in ends
    ]
