from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hoodie_py.formats.parquet.carried_bloom as carried_bloom
from hoodie_py.formats.parquet.bloom import BloomFilter, BloomSettings
from hoodie_py.formats.parquet.carried_bloom import carry_filter
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY
from tests.corpus import corpus_names
from tests.formats.blooms import build_bloom
from tests.formats.parquet.test_bloom import java_files

ROWS = 20_000
FITTED = BloomSettings(fitted=True)
OLD = pa.array([f"old-{i:05d}" for i in range(ROWS)])
NEW = pa.array([f"new-{i}" for i in range(200)])
OTHERS = pa.array([f"other-{i}" for i in range(20_000)])


def make_facts(
    keys: pa.Array, settings: BloomSettings = FITTED, bloom: BloomFilter | None = None, **changed: str | None
) -> dict[bytes, bytes]:
    bloom = build_bloom(keys, settings) if bloom is None else bloom
    texts = sorted(keys.to_pylist())
    facts: dict[str, str | None] = {
        BLOOM_KEY: bloom.to_text(), BLOOM_TYPE_KEY: bloom.type_code, MIN_KEY: texts[0], MAX_KEY: texts[-1],
    }  # fmt: skip
    facts |= changed
    return {name.encode(): value.encode() for name, value in facts.items() if value is not None}


@pytest.mark.parametrize("settings", [FITTED, BloomSettings(), BloomSettings(dynamic=False, fitted=True)])
def test_a_filter_is_carried_with_the_new_keys(settings: BloomSettings) -> None:
    found = carry_filter(make_facts(OLD, settings), ROWS, pa.chunked_array([NEW, OLD[:50]]), settings)
    assert found is not None
    again = BloomFilter.from_text(found.to_text(), found.type_code)
    assert again.may_contain(OLD).all()
    assert again.may_contain(NEW).all()
    assert again.may_contain(OTHERS).mean() < 0.001


def test_the_filter_of_the_old_file_stays_as_it_was() -> None:
    facts = make_facts(OLD)
    before = dict(facts)
    assert carry_filter(facts, ROWS, NEW, FITTED) is not None
    assert facts == before


def open_damaged() -> BloomFilter:
    bloom = build_bloom(OLD, FITTED)
    row = bloom.rows[0].copy()
    row[: len(row) // 20] = 0
    return BloomFilter(bloom.bits, bloom.hashes, (row,), bloom.per_row, bloom.in_last_row)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        make_facts(OLD, **{BLOOM_KEY: None}),
        make_facts(OLD, **{BLOOM_KEY: "no base 64!"}),
        make_facts(OLD, **{BLOOM_KEY: base64.b64encode(b"\xff" * 40).decode()}),
        make_facts(OLD, **{BLOOM_TYPE_KEY: "DYNAMIC_V1"}),
        make_facts(OLD, **{MIN_KEY: None}),
        make_facts(OLD, **{MAX_KEY: "z"}),
        make_facts(
            OLD, bloom=build_bloom(OLD[: ROWS * 9 // 10], FITTED), **{MIN_KEY: "old-00000", MAX_KEY: "old-00001"}
        ),
        make_facts(OLD, bloom=open_damaged()),
        make_facts(OLD, bloom=build_bloom(pa.array([f"{i}" for i in range(ROWS)]), FITTED)),
    ],
    ids=[
        "none",
        "no-filter",
        "no-base64",
        "garbage",
        "kind",
        "no-least",
        "other-greatest",
        "fewer",
        "zeroed",
        "others",
    ],
)
def test_a_filter_that_may_lack_keys_is_not_carried(facts: Mapping[bytes, bytes]) -> None:
    assert carry_filter(facts, ROWS, NEW, FITTED) is None


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (FITTED, BloomSettings(fitted=True, fpp=1e-12)),
        (FITTED, BloomSettings(fitted=True, fpp=1e-3)),
        (FITTED, BloomSettings(fitted=True, dynamic=False)),
        (FITTED, BloomSettings()),
        (BloomSettings(), FITTED),
        (BloomSettings(fitted=True, max_entries=ROWS // 2, entries=100), FITTED),
    ],
)
def test_other_settings_make_a_new_filter(made: BloomSettings, wanted: BloomSettings) -> None:
    assert carry_filter(make_facts(OLD, made), ROWS, NEW, made) is not None
    assert carry_filter(make_facts(OLD, made), ROWS, NEW, wanted) is None


def test_many_new_keys_make_a_new_filter() -> None:
    assert carry_filter(make_facts(OLD), ROWS, OTHERS[:1000], FITTED) is not None
    assert carry_filter(make_facts(OLD), ROWS, OTHERS[:10_000], FITTED) is None
    assert carry_filter(make_facts(OLD), ROWS, pa.concat_arrays([OLD, OLD[:10]]), FITTED) is not None


def test_small_files_make_a_new_filter() -> None:
    few = OLD[:9999]
    assert carry_filter(make_facts(few), len(few), NEW, FITTED) is None


def test_files_of_too_many_keys_get_the_filter_that_excludes_none() -> None:
    small = BloomSettings(entries=100, max_entries=1000, fitted=True)
    found = carry_filter(make_facts(OLD, bloom=BloomFilter.make_open(dynamic=True)), ROWS, NEW, small)
    assert found is not None
    assert (found.bits, [row.tolist() for row in found.rows]) == (8, [[255]])


@given(st.integers(2, 300), st.integers(0, 100), st.integers(20, 200), st.booleans(), st.booleans())
def test_no_key_is_ever_lost(old: int, new: int, entries: int, dynamic: bool, fitted: bool) -> None:
    settings = BloomSettings(entries, 1e-4, 100, dynamic=dynamic, fitted=fitted)
    keys = pa.array([f"k{i}" for i in range(old)])
    added = pa.array([f"n{i}" for i in range(new)] + ["k0"], pa.string())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carried_bloom, "_LEAST_ROWS", 1)
        found = carry_filter(make_facts(keys, settings), old, added, settings)
    if found is not None:
        assert found.may_contain(keys).all()
        assert found.may_contain(added).all()


def test_filters_of_java_are_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried_bloom, "_LEAST_ROWS", 1)
    monkeypatch.setattr(carried_bloom, "_MOST_TIMES_SIZE", 1 << 30)
    monkeypatch.setattr(carried_bloom, "_MOST_TIMES_FPP", 1e300)
    carried = kept = 0
    for name in corpus_names():
        for file in java_files(name):
            facts = file.metadata.metadata or {}
            if BLOOM_KEY.encode() not in facts or "_hoodie_record_key" not in file.schema_arrow.names:
                continue
            settings = BloomSettings(dynamic=BLOOM_TYPE_KEY.encode() in facts)
            found = carry_filter(facts, file.metadata.num_rows, NEW, settings)
            kept += 1
            if found is None:
                continue
            keys = pa.chunked_array(
                [
                    c
                    for g in range(file.num_row_groups)
                    for c in file.read_row_group(g, ["_hoodie_record_key"])[0].chunks
                ]
            ).cast(pa.string())
            assert found.may_contain(keys.combine_chunks()).all()
            assert found.may_contain(NEW).all()
            carried += 1
    assert kept > 50
    assert carried > 0.8 * kept


def test_rows_of_javas_dynamic_filters_count_each_for_itself() -> None:
    first, second = (
        build_bloom(part, BloomSettings(entries=ROWS // 2)) for part in (OLD[: ROWS // 2], OLD[ROWS // 2 :])
    )
    java = BloomFilter(first.bits, first.hashes, (first.rows[0], second.rows[0]), ROWS // 2, ROWS // 2)
    found = carry_filter(make_facts(OLD, bloom=java), ROWS, NEW, FITTED)
    assert found is not None
    assert np.array_equal(found.rows[0], java.rows[0])
    assert found.may_contain(pa.concat_arrays([OLD, NEW])).all()
    half = BloomFilter(first.bits, first.hashes, (first.rows[0], first.rows[0] & second.rows[0]), ROWS // 2, ROWS // 2)
    assert carry_filter(make_facts(OLD, bloom=half, **{MAX_KEY: "old-00009"}), ROWS, NEW, FITTED) is None
