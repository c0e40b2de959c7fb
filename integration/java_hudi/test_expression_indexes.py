"""Expression indexes that we build: Java Hudi skips files by them, goes on with them, and builds the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.snapshot import open_snapshot
from integration.java_hudi.indexes import WITH_TYPES, IndexedKind, IndexedLake
from integration.java_hudi.session import JavaHudiError, JavaSession
from integration.java_hudi.tables import by_key, make_row

KINDS = [
    IndexedKind(version, True, True, merge_on_read, sql=False)
    for version in (9, 8)
    for merge_on_read in (True, False)
]  # fmt: skip
FUNCTIONS: list[tuple[str, str, dict[str, object]]] = [
    ("year", "day", {}),
    ("month", "day", {}),
    ("day", "day", {}),
    ("date_add", "day", {"days": 3}),
    ("date_sub", "day", {"days": 3}),
    ("to_date", "day", {}),
    ("to_timestamp", "at", {}),
    ("length", "name", {}),
    ("upper", "id", {}),
    ("lower", "id", {}),
    ("trim", "name", {"trimString": "n2"}),
    ("ltrim", "name", {"trimString": "n2"}),
    ("rtrim", "name", {"trimString": "n2"}),
    ("substring", "name", {"pos": 2, "len": 5}),
    ("substring", "id", {"pos": -2, "len": 1}),
]
FILTERS = ("substring(id, 1, 3) = 'k01'", "lower(id) = 'k005'")
OF_DATES = ("year(day) = 1969", "year(day) = 1970")
OF_TEXTS = ("substring(name, 1, 4) = 'at 3'", "substring(name, 1, 4) > 'at 3'")
"""Before version 9 Java cannot read statistics of years; it takes an index for any function of its column."""


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_java_goes_on_with_our_indexes(java: JavaSession, kind: IndexedKind, tmp_path: Path) -> None:
    lake = IndexedLake(java, tmp_path / "table", kind)
    lake.begin()
    table = lake.open()
    if kind.version >= WITH_TYPES:
        table.index.build("first", "day", function="year")
    else:
        table.index.build("first", "name", function="substring", arguments={"pos": 1, "len": 4})
    table.index.build("start", "id", function="substring", arguments={"pos": 1, "len": 3})
    names = {"expr_index_first", "expr_index_start"}
    if not kind.merge_on_read:
        table.index.build("low", "id", function="lower", kind="bloom_filters")
        names.add("expr_index_low")
    check(lake, names)
    lake.change(4)
    check(lake, names)
    lake.turn(5)
    check(lake, names)
    if kind.merge_on_read:
        lake.run_java()
    else:  # Java's clean fails where bloom filters of an expression are to be deleted, also those that it made
        lake.open().clean(retain_commits=1)
    lake.change(6)
    check(lake, names)
    lake.open().index.drop("first")
    lake.change(7)
    check(lake, names - {"expr_index_first"})


def check(lake: IndexedLake, names: set[str]) -> None:
    """Filter by the indexes, in Java and here, and compare every entry with the files."""
    lake.check()
    lake.check_entries()
    config = lake.open().config
    assert {name for name in config.metadata_partitions if name.startswith("expr_index_")} == names
    for where in (*FILTERS, *(OF_DATES if lake.kind.version >= WITH_TYPES else OF_TEXTS)):
        plain = by_key(lake.java.read(lake.path, where=where, metadata=False)).keys()
        assert by_key(lake.java.read(lake.path, where=where)).keys() == plain, where
    wanted = {key for key in lake.rows if key.startswith("k01")}
    assert by_key(lake.java.read(lake.path, where=FILTERS[0])).keys() == wanted


@pytest.mark.parametrize("merge_on_read", [True, False], ids=["mor", "cow"])
def test_java_skips_files_by_our_index(java: JavaSession, merge_on_read: bool, tmp_path: Path) -> None:
    """Java reads rows by the index after files that cannot have them were cut: it does not open these."""
    lake = IndexedLake(java, tmp_path / "table", IndexedKind(9, True, True, merge_on_read, sql=False))
    lake.write([make_row(number, part=f"p{number // 10}") for number in range(30)], "insert", mode="overwrite")
    kind = "column_stats" if merge_on_read else "bloom_filters"
    lake.open().index.build("low", "id", function="lower", kind=kind)
    for part in ("p0", "p2"):
        for path in (tmp_path / "table" / part).glob("*.parquet"):
            path.write_bytes(path.read_bytes()[:-200] + b"\0" * 200)
            (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    assert by_key(java.read(lake.path, where="lower(id) = 'k015'")).keys() == {"k015"}
    with pytest.raises(JavaHudiError):
        java.read(lake.path, where="lower(id) = 'k015'", metadata=False)


def test_both_build_the_same(java: JavaSession, tmp_path: Path) -> None:
    lake = IndexedLake(java, tmp_path / "table", IndexedKind(9, True, True, True, sql=False))
    lake.begin()
    for number, (function, column, arguments) in enumerate(FUNCTIONS):
        lake.open().index.build(f"ours{number}", column, function=function, arguments=arguments)
        ours = read_entries(lake.path, f"expr_index_ours{number}")
        lake.open().index.drop(f"ours{number}")
        options = ", ".join(f"{key}='{value}'" for key, value in {"expr": function, **arguments}.items())
        lake.run_sql(f"create index theirs{number} on indexed using column_stats({column}) options({options})")
        theirs = read_entries(lake.path, f"expr_index_theirs{number}")
        assert ours == theirs, (function, column)
        assert lake.open().verify(data=False).is_right
        lake.open().index.drop(f"theirs{number}")


def read_entries(path: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return what an index says, by key: kind of record and statistics, with the bounds that are set."""
    view = open_metadata_view(open_snapshot(path))
    assert view is not None
    found = {}
    for batch in view.read_all(name):
        for row in batch.to_pylist():
            said = dict(row["ColumnStatsMetadata"])
            for bound in ("minValue", "maxValue"):
                said[bound] = {key: value for key, value in (said[bound] or {}).items() if value is not None}
            found[row["key"]] = {"type": row["type"], **said}
    return found
