"""Keys are those that Java wrote (table ``mdt_all_mor_v9`` of the reference tables).

Tests of keys and records of the record index, against the tables that Java Hudi wrote.

Tests of keys of secondary indexes, against those that Java Hudi wrote and the rules written out.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.indexes.keys import (
    LOCATION_TYPE,
    RECORD_INDEX_TYPE,
    SECONDARY_INDEX_TYPE,
    TEXT_ENCODING,
    UUID_ENCODING,
    encode_file_names,
    encode_names,
    encode_partitions,
    escape_secondary_values,
    find_file_groups,
    find_secondary_groups,
    format_secondary_values,
    make_bloom_keys,
    make_column_keys,
    make_column_partition_prefixes,
    make_column_prefixes,
    make_expression_partition_keys,
    make_group_id,
    make_locations,
    make_partition_keys,
    make_secondary_keys,
    parse_group_id,
    read_file_ids,
    split_secondary_keys,
)
from hoodie_py.formats.indexes.record_schema import RECORD_INDEX_COLUMN

LOG = ".c0665953-ac40-4b9d-b5db-e4bdbaf46566-0_20261121101432219.log.1_0-2836-3966"
BASE = "c0665953-ac40-4b9d-b5db-e4bdbaf46566-0_0-2709-3775_20261121101411270.parquet"


def test_keys_are_javas() -> None:
    column, partition = encode_names(["part"] * 2), encode_partitions(["p0"] * 2)
    files = encode_file_names([LOG, BASE])
    assert make_column_keys(column, partition, files).to_pylist() == [
        "+WGrmgkN3io=Z+KNMU8CLlo=dv5mLhm7kbbhlvPpioJLfQ==",
        "+WGrmgkN3io=Z+KNMU8CLlo=nVTk3niKlKd3eNJf94rN6Q==",
    ]
    assert make_bloom_keys(partition, files)[1].as_py() == "Z+KNMU8CLlo=nVTk3niKlKd3eNJf94rN6Q=="
    assert make_partition_keys(column, partition)[0].as_py() == "+WGrmgkN3io=Z+KNMU8CLlo="


def test_prefixes_begin_the_keys() -> None:
    assert make_column_prefixes(["part", "id"]) == ["+WGrmgkN3io=", "sLZoasJosec="]
    found = make_column_partition_prefixes(["part"], ["p0", "p1"])
    assert found == ["+WGrmgkN3io=Z+KNMU8CLlo=", "+WGrmgkN3io=qT4Pioac33A="]


def test_a_table_without_partitions_has_the_partition_point() -> None:
    assert encode_partitions([""]).equals(encode_names(["."]))


def test_an_expression_index_marks_keys_of_whole_partitions() -> None:
    column, partition = encode_names(["c"]), encode_partitions(["p0"])
    found = make_expression_partition_keys(column, partition)[0].as_py()
    assert found == encode_names(["c"])[0].as_py() + encode_names(["__partition_stat__"])[0].as_py() + "Z+KNMU8CLlo="


FILE_ID = "547b6f0e-1c5e-42cc-8eb8-dfc6e2c8c892"


@pytest.mark.parametrize("name", ["mdt_all_cow_v9", "mdt_all_mor_v6", "mdt_all_mor_v9", "mdt_secondary_index_mor_v9"])
def test_records_of_java_are_made_again(corpus: Callable[[str], Path], name: str) -> None:
    records = HoodieTable.open(f"{corpus(name)}/.hoodie/metadata").scan().to_arrow()
    records = records.filter(pc.equal(records["type"], RECORD_INDEX_TYPE))
    locations = pa.concat_arrays(records[RECORD_INDEX_COLUMN].chunks)
    names, numbers = read_file_ids(locations)
    partitions = locations.field("partitionName").to_pylist()
    groups = list(dict.fromkeys(zip(partitions, (names[i] for i in numbers), strict=True)))
    at = np.array([groups.index((path, names[i])) for path, i in zip(partitions, numbers, strict=True)])
    millis = locations.field("instantTime").to_numpy()
    made = make_locations([path for path, _ in groups], [file_id for _, file_id in groups], at, millis, UUID_ENCODING)
    assert len(made) == 8
    assert made.to_pylist() == locations.to_pylist()


def test_group_numbers_are_java_hash_codes_without_sign_modulo_the_count() -> None:
    keys = pa.chunked_array([["k1", "polygenelubricants"], ["DESIGNING WORKHOUSES", "\U0001f600"]])
    # "polygenelubricants" has the hash code -2^31, whose absolute value Java cannot hold
    assert find_file_groups(keys, 10).tolist() == [6, 8, 8, 9]
    assert find_file_groups(keys, 1).tolist() == [0, 0, 0, 0]
    assert find_file_groups(pa.array([], pa.string()), 4).tolist() == []


@given(st.none() | st.text(st.characters(codec="utf-8")), st.integers(0, 20_000))
def test_names_of_file_groups_are_read_back(partition: str | None, number: int) -> None:
    name = make_group_id(number, partition)
    assert parse_group_id(name) == (partition, number)
    assert name.count("-") == (3 if partition is None else 4)


def test_a_partition_is_escaped_as_in_java() -> None:
    assert make_group_id(12, "day=2024-01_02/x") == "record-index-day%3D2024%2D01%5F02%2Fx-0012-0"


@pytest.mark.parametrize("name", ["files-0000-0", "record-index-x-y-0000-0", "record-index-0000-1", ""])
def test_other_file_groups_are_refused(name: str) -> None:
    with pytest.raises(InvalidTableError, match="record index"):
        parse_group_id(name)


FILE_IDS = st.sampled_from([FILE_ID, f"{FILE_ID}-0", f"{FILE_ID}-17", "00000003-1c5e-42cc-8eb8-dfc6e2c8c892-0", "odd"])


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b=1"]), FILE_IDS), max_size=20), st.booleans())
def test_file_ids_are_read_back(places: list[tuple[str, str]], text: bool) -> None:
    groups = list(dict.fromkeys(places))
    at = np.array([groups.index(each) for each in places], np.int64)
    encoding = TEXT_ENCODING if text else None
    made = make_locations([path for path, _ in groups], [file_id for _, file_id in groups], at, 7, encoding)
    assert made.type == LOCATION_TYPE
    assert made.field("partitionName").to_pylist() == [path for path, _ in places]
    names, numbers = read_file_ids(made)
    assert [names[i] for i in numbers] == [file_id for _, file_id in places]
    assert len(set(names)) == len(names)


def test_a_file_id_that_is_no_uuid_needs_the_other_encoding() -> None:
    with pytest.raises(InvalidTableError, match="UUID"):
        make_locations(["p"], ["odd"], np.zeros(1, np.int64), 7, UUID_ENCODING)


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
