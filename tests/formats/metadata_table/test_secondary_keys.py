"""Tests of keys of secondary indexes, against those that Java Hudi wrote and the rules written out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.metadata_table.record_index_keys import find_file_groups
from hoodie_py.formats.metadata_table.secondary_keys import (
    SECONDARY_INDEX_TYPE,
    escape_secondary_values,
    find_secondary_groups,
    format_secondary_values,
    make_secondary_keys,
    split_secondary_keys,
)

TEXTS = st.text(st.sampled_from(["$", "\\", "\0", "a", "é", "\n", "\U0001f600"]), max_size=6)


def test_keys_of_java_are_split_and_made_again(corpus: Callable[[str], Path]) -> None:
    folder = corpus("mdt_secondary_index_mor_v9")
    records = HoodieTable.open(f"{folder}/.hoodie/metadata").scan().to_arrow()
    keys = pa.concat_arrays(records.filter(pc.equal(records["type"], SECONDARY_INDEX_TYPE))["key"].chunks)
    values, record_keys = split_secondary_keys(keys)
    rows = HoodieTable.open(folder).scan().to_arrow()
    expected = dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))
    assert dict(zip(record_keys.to_pylist(), values.to_pylist(), strict=True)) == expected
    assert make_secondary_keys(values, record_keys).equals(keys)


def _escape(text: str | None) -> str:
    if text is None:
        return "\0"
    return "".join("\\" + each if each in "\\$\0" else each for each in text)


@given(st.lists(st.tuples(st.none() | TEXTS, TEXTS)))
def test_keys_are_escaped_and_split(pairs: list[tuple[str | None, str]]) -> None:
    values = pa.array([value for value, _ in pairs], pa.string())
    records = pa.array([record for _, record in pairs], pa.string())
    keys = make_secondary_keys(values, records)
    assert keys.to_pylist() == [f"{_escape(value)}${_escape(record)}" for value, record in pairs]
    found_values, found_records = split_secondary_keys(keys)
    assert found_values.to_pylist() == values.to_pylist()
    assert found_records.to_pylist() == records.to_pylist()
    prefixes = pa.array([f"{_escape(value)}$" for value, _ in pairs], pa.string())
    assert pc.binary_join_element_wise(escape_secondary_values(values), "$", "").to_pylist() == prefixes.to_pylist()
    assert find_secondary_groups(keys, 7, 2).tolist() == find_file_groups(prefixes, 7).tolist()
    assert find_secondary_groups(keys, 7, 1).tolist() == find_file_groups(keys, 7).tolist()


def test_a_key_without_separator_is_refused() -> None:
    with pytest.raises(InvalidTableError, match="secondary index"):
        split_secondary_keys(pa.array(["a$b", "a\\$b"]))


def test_values_have_the_texts_of_java() -> None:
    instant = datetime(2026, 1, 1, 0, 0, 0, 5, UTC)
    columns = {
        pa.int32(): ([1, None, -(2**31)], ["1", None, "-2147483648"]),
        pa.int64(): ([2**60], ["1152921504606846976"]),
        pa.float32(): ([0.1, 3.4e10, None], ["0.1", "3.3999999E10", None]),
        pa.float64(): ([2e-3, 1e7, -0.0, float("nan")], ["0.002", "1.0E7", "-0.0", "NaN"]),
        pa.date32(): ([date(1970, 1, 3), date(1969, 12, 31)], ["2", "-1"]),
        pa.timestamp("us", "UTC"): ([instant], ["1767225600000005"]),
        pa.timestamp("ms"): ([instant.replace(tzinfo=None, microsecond=5000)], ["1767225600005000"]),
        pa.string(): (["a$", ""], ["a$", ""]),
    }
    for type_, (values, texts) in columns.items():
        assert format_secondary_values(pa.array(values, type_)).to_pylist() == texts
    with pytest.raises(UnsupportedFeatureError, match="bool"):
        format_secondary_values(pa.array([True]))
