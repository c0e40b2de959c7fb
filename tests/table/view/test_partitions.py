"""Discovery by listing, and values read off paths."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.view.partition_values import may_hold_slash, parse_partition_constants, parse_partition_values
from hoodie_py.table.view.partitions import Partition, discover_partitions, parse_partition
from tests.corpus import case_folder, corpus_names, load_case
from tests.formats.partition_paths import make_partition_path
from tests.table.tables import make_table, open_view, properties_text
from tests.watched_requests import Request, find_listed

METAFILE = ".hoodie_partition_metadata"


def values_of(partition: Partition) -> dict[str, Any]:
    """The values that a path fixes, by column."""
    return dict(zip(partition.fields, partition.values, strict=True))


def config_of(**extra: str) -> TableConfig:
    return TableConfig.from_bytes(properties_text(**extra))


def fields(names: str, generator: str = "SIMPLE", **extra: str) -> TableConfig:
    return config_of(**{"hoodie.table.partition.fields": names, "hoodie.table.keygenerator.type": generator, **extra})


def found(root: Path, config: TableConfig | None = None, **arguments: Any) -> list[str]:
    schema = arguments.pop("schema", pa.schema([]))
    listings = discover_partitions(TableFiles.open(str(root)), config or config_of(), schema, **arguments)
    return [each.partition.path for each in listings]


def test_partitions_at_any_depth_by_any_metafile(tmp_path: Path):
    make_table(tmp_path, {
        f"a/{METAFILE}": b"", f"b/c/{METAFILE}.parquet": b"", f"b/d/e/{METAFILE}.orc": b"", "b/f/data.parquet": b"",
        "empty": None, f".hoodie/metadata/files/{METAFILE}": b"", f"b/.hoodie/x/{METAFILE}": b"",
        f"a/below/{METAFILE}": b"", f"not/{METAFILE}": None,
    })  # fmt: skip
    assert found(tmp_path) == ["a", "b/c", "b/d/e"]


def test_the_base_folder_is_the_partition_of_a_table_without_any(tmp_path: Path):
    make_table(tmp_path, {METAFILE: b"", f"a/{METAFILE}": b""})
    assert found(tmp_path) == [""]


def test_listing_of_a_partition_comes_with_it(tmp_path: Path):
    make_table(tmp_path, {f"a/{METAFILE}": b"", "a/x.parquet": b"12", "a/folder/y": b""})
    (listing,) = discover_partitions(TableFiles.open(str(tmp_path)), config_of(), pa.schema([]))
    assert {info.path: info.size for info in listing.files} == {f"a/{METAFILE}": 0, "a/x.parquet": 2}


def test_a_cycle_of_links_ends(tmp_path: Path):
    make_table(tmp_path, {f"a/{METAFILE}": b"", "b/file": b""})
    (tmp_path / "b" / "loop").symlink_to(tmp_path / "b", target_is_directory=True)
    with pytest.raises(InvalidTableError, match="deeper"):
        found(tmp_path)


def test_pruned_partitions_are_not_listed_where_depth_tells(tmp_path: Path, requests_made: list[Request]):
    make_table(tmp_path, {f"{number}/{METAFILE}": b"" for number in range(5)})
    arguments = {"keep": lambda partition: values_of(partition).get("p") in (1, 3)}
    assert found(tmp_path, fields("p"), schema=pa.schema({"p": pa.int32()}), **arguments) == ["1", "3"]
    assert find_listed(requests_made, tmp_path) == ["", "1", "3"]


def test_pruning_by_text_looks_at_whole_partitions_only(tmp_path: Path):
    make_table(tmp_path, {f"a/b/{METAFILE}": b"", f"c/{METAFILE}": b""})
    arguments = {
        "keep": lambda partition: values_of(partition)["p"] == "a/b",
        "schema": pa.schema({"p": pa.string()}),
    }
    assert found(tmp_path, fields("p"), **arguments) == ["a/b"]


VALUES = [
    ("7", pa.int32(), 7), ("-7", pa.int64(), -7), ("99999999999", pa.int32(), ...), ("x", pa.int32(), ...),
    ("1_0", pa.int32(), ...), ("a b", pa.string(), "a b"), ("a%2Fb", pa.string(), "a/b"), ("50%", pa.string(), "50%"),
    ("default", pa.string(), "default"), ("2024-02-29", pa.date32(), date(2024, 2, 29)),
    ("2024-02-30", pa.date32(), ...),
    ("true", pa.bool_(), True), ("False", pa.bool_(), False), ("1", pa.bool_(), ...), ("1.5", pa.float64(), 1.5),
    ("1_5", pa.float64(), ...), ("1.50", pa.decimal128(5, 2), Decimal("1.50")), ("1.555", pa.decimal128(5, 2), ...),
    ("12345", pa.decimal128(5, 2), ...), ("1e9999999", pa.decimal128(5, 2), ...), ("NaN", pa.decimal128(5, 2), ...),
    ("2024-01-01 00%3A00%3A00", pa.timestamp("us", "UTC"), ...), ("abc", pa.binary(), b"abc"),
    ("__HIVE_DEFAULT_PARTITION__", pa.int32(), None), ("__HIVE_DEFAULT_PARTITION__", pa.timestamp("us"), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "type_", "value"), VALUES)
@pytest.mark.parametrize("prefix", ["", "p="])
def test_values(text: str, type_: pa.DataType, value: Any, prefix: str):
    known = parse_partition_constants(fields("p"), pa.schema({"p": type_}), prefix + text)
    assert known == ({} if value is ... else {"p": value})


def test_timestamps_are_read_off_paths_only_for_files_without_the_column():
    zoned, naive = pa.schema({"p": pa.timestamp("us", "UTC")}), pa.schema({"p": pa.timestamp("us")})
    path = "2024-01-01 01%3A02%3A03.5"
    assert parse_partition_values(fields("p"), zoned, path) == {"p": datetime(2024, 1, 1, 1, 2, 3, 500000, UTC)}
    assert parse_partition_values(fields("p"), naive, path) == {"p": datetime(2024, 1, 1, 1, 2, 3, 500000)}


def test_paths_that_do_not_fit_the_fields_tell_nothing():
    schema = pa.schema({"p": pa.string(), "q": pa.int32()})
    assert values_of(parse_partition(fields("p,q"), schema, "a/b/1")) == {}
    assert values_of(parse_partition(fields("p,q"), schema, "p=a/b/q=1")) == {"p": "a/b", "q": 1}
    assert values_of(parse_partition(fields("p,q"), schema, "a/1")) == {"p": "a", "q": 1}
    assert values_of(parse_partition(fields("p,missing"), schema, "a/1")) == {"p": "a"}
    assert values_of(parse_partition(config_of(), schema, "")) == {}


@pytest.mark.parametrize("generator", ["TIMESTAMP", "CUSTOM", "com.example.Mine"])
def test_generators_whose_paths_are_not_the_values(generator: str):
    schema = pa.schema({"p": pa.string()})
    assert parse_partition_constants(fields("p", generator), schema, "2024/01/02") == {}
    assert parse_partition_values(fields("p", generator), schema, "2024/01/02") == {"p": "2024/01/02"}


def test_slash_separated_dates():
    config = fields("p", **{"hoodie.datasource.write.slash.separated.date.partitioning": "true"})
    assert parse_partition_constants(config, pa.schema({"p": pa.date32()}), "2024/01/02") == {"p": date(2024, 1, 2)}
    assert may_hold_slash(config, pa.schema({"p": pa.date32()}))


@given(st.lists(st.one_of(st.none(), st.text(min_size=1)), min_size=1, max_size=3), st.booleans())
def test_url_encoded_paths_spell_every_text(values: list[str | None], hive: bool):
    names = tuple("pqr"[: len(values)])
    config = fields(",".join(names), "COMPLEX", **{"hoodie.datasource.write.partitionpath.urlencode": "true"})
    path = make_partition_path(names, tuple(values), hive_style=hive, url_encode=True)
    expected = [None if value == "__HIVE_DEFAULT_PARTITION__" else value for value in values]
    assert list(parse_partition(config, pa.schema([(name, pa.string()) for name in names]), path).values) == expected


PARTITIONED = [
    name for name in corpus_names()
    if load_case(name).get("partition_fields") and "nometa" not in name
]  # fmt: skip


@pytest.mark.parametrize("name", PARTITIONED)
def test_constants_are_the_values_in_javas_answer(name: str, corpus: Callable[[str], Path]):
    view = open_view(corpus(name))
    (query,) = [each for each in load_case(name)["queries"] if each["id"] == "snapshot"] or [None]
    if query is None or query["or_error"] or query.get("subpath") or query.get("columns"):
        return  # an answer of chosen columns does not tell paths
    schema = resolve_schema(view.timeline).arrow
    paths = {each.partition.path for each in view.list_partitions(schema)}
    checked = 0
    for row in pq.read_table(case_folder(name) / query["expected"]).to_pylist():
        path = row["_hoodie_partition_path"]
        assert path in paths
        for column, value in parse_partition_constants(view.config, schema, path).items():
            assert row[column] == value
            checked += 1
    generator_tells = view.config.key_generator not in ("TIMESTAMP", "CUSTOM")
    assert bool(checked) == (generator_tells and query["rows"] > 0)
