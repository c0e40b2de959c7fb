"""Tests of keys and records of the record index, against the tables that Java Hudi wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.metadata_table.record_index_keys import (
    LOCATION_TYPE,
    RECORD_INDEX_COLUMN,
    RECORD_INDEX_TYPE,
    TEXT_ENCODING,
    UUID_ENCODING,
    find_file_groups,
    make_group_id,
    make_locations,
    parse_group_id,
    read_file_ids,
)

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
