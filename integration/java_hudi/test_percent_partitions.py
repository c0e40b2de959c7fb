"""Partition values that look percent-encoded: our queries equal Java's, and Java reads the table after our services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, UnsupportedFeatureError
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import Kind

VALUES = ["a%41b", "100%", "x", "%zz"]
WHERE = [
    "p = 'a%41b'", "p = 'aAb'", "p in ('a%41b')", "p in ('aAb')", "p in ('aAb', 'z')", "p <=> 'aAb'", "p like 'a%'",
    "p = 'a%41b' and n = 0", "upper(p) = 'AAB'", "length(p) = 3", "p <> 'x'", "p = '100%'", "p = '%zz'", "p = 'x'",
    None,
]  # fmt: skip
OURS = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}


@pytest.mark.parametrize(
    ("kind", "hive"), [(Kind(8, True, True), False), (Kind(6, True, False, False), True)], ids=["v8-mor", "v6-cow-hive"]
)
def test_queries_are_javas_and_stored_values_stay(java: JavaSession, kind: Kind, hive: bool, tmp_path: Path) -> None:
    path = tmp_path / "table"
    options = {
        **kind.write_options,
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
    }
    rows = [{"id": f"k{at}", "p": value, "ts": 1, "n": at} for at, value in enumerate(VALUES)]
    java.write(path, rows, options, operation="insert", mode="overwrite")
    java.write(path, [{**row, "ts": 2} for row in rows[:2]], options)
    compare(java, path, kind)
    table = HoodieTable.open(path)
    with pytest.raises(UnsupportedFeatureError, match="for the rows of"):
        table.upsert(table.scan().to_arrow(), options=OURS)
    with pytest.raises(UnsupportedFeatureError, match="Changing rows"):
        table.update({"n": "n + 1"}, options=OURS)
    table.update({"n": "n + 1"}, "p = 'x'", options=OURS)
    if kind.merge_on_read:
        table.compact(options=OURS)
    table.cluster(options=OURS)
    compare(java, path, kind)
    java.write(path, [{**rows[0], "ts": 9, "n": 9}], options)
    compare(java, path, kind)


def compare(java: JavaSession, path: Path, kind: Kind) -> None:
    ranges = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
    asked: list[tuple[str | None, dict[str, str]]] = [(where, {}) for where in WHERE]
    asked += [(where, ranges) for where in WHERE]
    for (where, options), found in zip(asked, java.read_together(path, asked), strict=True):
        table = HoodieTable.open(path)
        ours = table.incremental("earliest", filter=where) if options else table.scan(filter=where)
        assert listed(ours.to_arrow()) == listed(found), (where, options)


def listed(rows: Any) -> list[tuple[str, str, int]]:
    return sorted((row["id"], row["p"], row["n"]) for row in rows.to_pylist())
