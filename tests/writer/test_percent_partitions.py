"""Partition values that look percent-encoded, in tables that do not encode paths: read as Java does, never stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.writer.dml.clauses import Update
from hoodie_py.writer.keygen import generator
from tests.writer.compaction_tables import QUICK

_SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("q", pa.string()), ("n", pa.int64())])
_ROWS = [
    {"id": "k0", "p": "a%41b", "q": "b%42", "n": 0}, {"id": "k1", "p": "100%", "q": "c", "n": 1},
    {"id": "k2", "p": "x", "q": "b%42", "n": 2}, {"id": "k3", "p": "%zz", "q": "c", "n": 3},
]  # fmt: skip
_COLUMNS = _SCHEMA.names
KINDS = [
    pytest.param(version, type_, hive, id=f"v{version}-{type_[:1]}OR-{'hive' if hive else 'plain'}")
    for version, type_, hive in (
        (9, "MERGE_ON_READ", False), (9, "COPY_ON_WRITE", True), (8, "MERGE_ON_READ", True),
        (6, "MERGE_ON_READ", False),
    )
]  # fmt: skip


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., HoodieTable]:
    """Makes tables with rows that Java writes and we refuse."""

    def made(version: int = 9, type_: str = "MERGE_ON_READ", hive: bool = False, by: Any = "p") -> HoodieTable:
        table = HoodieTable.create(
            tmp_path / "t",
            _SCHEMA,
            record_key="id",
            partition_by=by,
            table_type=type_,
            table_version=version,
            properties={"hoodie.datasource.write.hive_style_partitioning": str(hive).lower()},
        )
        with monkeypatch.context() as patched:
            patched.setattr(generator, "_LOOKS_ENCODED", "never")
            table.upsert(_ROWS, options=QUICK)
            table.upsert([{**_ROWS[2], "n": 20}], options=QUICK)
        return table

    return made


def _read(table: HoodieTable, where: str | None = None, **more: Any) -> dict[str, tuple[str, int]]:
    rows = HoodieTable.open(table.uri).scan(_COLUMNS, where, **more).to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["p"], row["n"]) for row in rows}


def _list_stored(table: HoodieTable) -> set[tuple[str, str]]:
    """All values of p in base files, with the key."""
    files = [*Path(table.uri.removeprefix("file://")).rglob("*.parquet")]
    rows = [row for file in files if ".hoodie" not in file.parts for row in pq.ParquetFile(file).read().to_pylist()]
    return {(row["id"], row["p"]) for row in rows}


_SHOWN = {"k0": ("aAb", 0), "k1": ("100%", 1), "k2": ("x", 20), "k3": ("%zz", 3)}


@pytest.mark.parametrize(("version", "type_", "hive"), KINDS)
def test_filters_find_what_javas_find(make: Callable[..., HoodieTable], version: int, type_: str, hive: bool) -> None:
    """A filter that fixes the partition names Java's folder, and its value is shown; others see decoded values."""
    table = make(version, type_, hive)
    assert _read(table) == _SHOWN
    fixed, decoded = {"k0": ("a%41b", 0)}, {"k0": ("aAb", 0)}
    for where, wanted in (
        ("p = 'a%41b'", fixed), ("p in ('a%41b')", fixed), ("'a%41b' = p and n = 0", fixed), ("p = 'aAb'", {}),
        ("p in ('aAb')", {}), ("p in ('aAb', 'z')", decoded), ("p in ('a%41b', 'z')", {}), ("p <=> 'aAb'", decoded),
        ("p <=> 'a%41b'", {}), ("p like 'aA%'", decoded), ("length(p) = 3 and n = 0", decoded),
        ("p = 'a%41b' or n = 5", {}), ("p = '100%'", {"k1": ("100%", 1)}), ("p = '%zz'", {"k3": ("%zz", 3)}),
    ):  # fmt: skip
        assert _read(table, where) == wanted, where
        kinds = {"query_type": "read_optimized"} if type_ == "MERGE_ON_READ" else {"options": _LISTED}
        assert _read(table, where, **kinds) == wanted, where


_LISTED = {"hoodie.metadata.enable": "false"}


def test_filters_that_fix_leading_fields_are_paths_too(make: Callable[..., HoodieTable]) -> None:
    table = make(by=["p", "q"])
    for where, keys in (
        ("p = 'aAb'", set()), ("p = 'a%41b'", set()), ("p = 'a%41b' and q = 'b%42'", {"k0"}),
        ("p = 'aAb' and q = 'bB'", set()), ("q = 'bB'", {"k0", "k2"}), ("q = 'b%42'", set()),
        ("p = 'x' and q = 'bB'", set()), ("p = 'x' and q = 'b%42'", {"k2"}), ("p = 'x'", {"k2"}),
        ("p in ('aAb', 'x') and q = 'bB'", {"k0", "k2"}), ("p like 'a%' and q = 'b%42'", set()),
    ):  # fmt: skip
        assert set(_read(table, where)) == keys, where


def test_ranges_choose_by_decoded_values_and_show_those_of_files(make: Callable[..., HoodieTable]) -> None:
    table = make()
    for where, keys in ((None, set(_SHOWN)), ("p = 'a%41b'", {"k0"}), ("p = 'aAb'", set()), ("p <=> 'aAb'", {"k0"}),
                        ("upper(p) = 'AAB' and n < 5", {"k0"}), ("p like 'a%4%'", set())):  # fmt: skip
        rows = table.incremental("earliest", columns=["id", "p"], filter=where).to_arrow().to_pylist()
        assert {row["id"] for row in rows} == keys, where
        assert {row["p"] for row in rows} == {row["p"] for row in _ROWS if row["id"] in keys}, where


@pytest.mark.parametrize(("version", "type_", "hive"), KINDS)
def test_no_value_is_stored_decoded_and_no_key_comes_twice(
    make: Callable[..., HoodieTable], version: int, type_: str, hive: bool
) -> None:
    table = make(version, type_, hive)
    stored = {("k0", "a%41b"), *((row["id"], row["p"]) for row in _ROWS)}
    raw = {"id": "k0", "p": "a%41b", "q": "c", "n": 9}
    refused: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (InvalidQueryError, "two hex digits", lambda: table.upsert([raw], options=QUICK)),
        (InvalidQueryError, "two hex digits", lambda: table.bulk_insert([raw], options=QUICK)),
        (UnsupportedFeatureError, "for the rows of", lambda: table.upsert(table.scan().to_arrow(), options=QUICK)),
        (UnsupportedFeatureError, "for the rows of", lambda: table.upsert(_scan(table), options=QUICK)),
        (UnsupportedFeatureError, "for the rows of", lambda: table.insert_overwrite(_scan(table), options=QUICK)),
        (UnsupportedFeatureError, "for the rows of", lambda: table.delete(_scan(table), options=QUICK)),
        (
            UnsupportedFeatureError, "for the rows of",
            lambda: table.upsert(_scan(table), options={**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE"}),
        ),
        (UnsupportedFeatureError, "Changing rows", lambda: table.update({"n": "n + 1"}, options=QUICK)),
        (UnsupportedFeatureError, "Changing rows", lambda: table.update({"n": "1"}, "p = 'a%41b'", options=QUICK)),
        (
            UnsupportedFeatureError, "Changing rows",
            lambda: table.merge(_scan(table), on="id", when_matched=Update({"n": "source.n"}), options=QUICK),
        ),
        (
            UnsupportedFeatureError, "for the rows of",
            lambda: table.merge([{**raw, "id": "z", "p": "aAb"}], on="id", when_not_matched="insert", options=QUICK),
        ),
    ]  # fmt: skip
    for error, message, write in refused:
        with pytest.raises(error, match=message):
            write()
        table = HoodieTable.open(table.uri)
    assert _read(table) == _SHOWN
    table.update({"n": "n + 1"}, "p = 'x'", options=QUICK)
    table.upsert([{**_ROWS[1], "n": 30}, {**_ROWS[3], "n": 31}], options=QUICK)
    if type_ == "MERGE_ON_READ":
        table.compact(options=QUICK)
    table.cluster(options=QUICK)
    rows = {**_SHOWN, "k1": ("100%", 30), "k2": ("x", 21), "k3": ("%zz", 31)}
    assert (_read(table), _list_stored(table)) == (rows, stored)


def _scan(table: HoodieTable) -> pa.Table:
    return table.scan(_COLUMNS).to_arrow()


@pytest.mark.parametrize("type_", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_rows_of_such_partitions_can_be_deleted(make: Callable[..., HoodieTable], type_: str) -> None:
    table = make(type_=type_)
    assert table.delete("p in ('aAb', 'z')", options=QUICK).rows_deleted == 1
    assert set(_read(table)) == {"k1", "k2", "k3"}


def test_deletes_by_key_merge_and_partition_find_them(make: Callable[..., HoodieTable]) -> None:
    table = make(type_="COPY_ON_WRITE")
    table.merge(pa.table({"id": ["k0"]}), on="id", when_matched="delete", options=QUICK)
    assert set(_read(table)) == {"k1", "k2", "k3"}
    assert table.delete_partition("a%41b", options=QUICK).groups_replaced == 1


def test_tables_that_encode_paths_take_all_values(tmp_path: Path) -> None:
    table = HoodieTable.create(
        tmp_path / "t", _SCHEMA, record_key="id", partition_by="p",
        properties={"hoodie.datasource.write.partitionpath.urlencode": "true"},
    )  # fmt: skip
    table.upsert(_ROWS)
    table.upsert(table.scan().to_arrow())
    table.update({"n": "n + 1"}, "p = 'a%41b'")
    assert _read(table, "p = 'a%41b'") == {"k0": ("a%41b", 1)}
    assert _read(table, "p = 'aAb'") == {}
    assert len(_read(table)) == len(_ROWS)
