"""Keys are those that Java wrote (table ``mdt_all_mor_v9`` of the reference tables)."""

from __future__ import annotations

from hoodie_py.formats.metadata_table.keys import (
    encode_file_names,
    encode_names,
    encode_partitions,
    make_bloom_keys,
    make_column_keys,
    make_column_partition_prefixes,
    make_column_prefixes,
    make_expression_partition_keys,
    make_partition_keys,
)

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
