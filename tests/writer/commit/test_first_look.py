"""What another process changes between the first look of a write and its beginning, or its commit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, Insert, Update
from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import CDC_ENABLED, METADATA_PARTITIONS, PARTITION_EXTRACTOR
from hoodie_py.files import TableFiles
from hoodie_py.writer.commit import commit_records, write_commit
from hoodie_py.writer.metadata_table.table_properties import change_properties
from tests.writer.compaction_tables import QUICK, leftovers
from tests.writer.slow_writes import pending
from tests.writer.written_tables import SCHEMA, Kind, Row, row

Meanwhile = Callable[[], object]
Contents = dict[str, tuple[str, str]]

SKEW = "=".join(*QUICK.items())
BY_INDEX = {**QUICK, "hoodie.index.type": "RECORD_INDEX"}
BEFORE = {"secondary": ["record_index"], "partition_stats": ["column_stats"]}
BUILDS = {
    "record_index": ["record_index"],
    "secondary": ["by_name", "--column", "name"],
    "expression": ["by_upper", "--column", "name", "--function", "upper"],
    "bloom_filters": ["bloom_filters"],
    "column_stats": ["column_stats"],
    "partition_stats": ["partition_stats"],
}


def hoodie(*arguments: str | Path) -> None:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-c", "from hoodie_py.cli import main; main()", *map(str, arguments), "--option", SKEW]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def stream(meanwhile: Meanwhile, *batches: list[Row]) -> pa.RecordBatchReader:
    """Rows in batches; something else happens after the first one."""

    def iterate() -> Iterator[pa.RecordBatch]:
        for number, rows in enumerate(batches):
            if number == 1:
                meanwhile()
            yield pa.RecordBatch.from_pylist(rows, SCHEMA)

    return pa.RecordBatchReader.from_batches(SCHEMA, iterate())


def upsert(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    table.upsert(stream(meanwhile, [row(0, 2, "new"), row(20, 2, "new")], [row(3, 2, "new")]), {**QUICK, **options})
    return {"k0": ("p0", "new"), "k20": ("p0", "new"), "k3": ("p1", "new")}


def insert(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    table.insert(stream(meanwhile, [row(20, 2, "new")], [row(21, 2, "new")]), {**QUICK, **options})
    return {"k20": ("p0", "new"), "k21": ("p1", "new")}


def bulk_insert(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    table.bulk_insert(stream(meanwhile, [row(20, 2, "new")], [row(21, 2, "new")]), {**QUICK, **options})
    return {"k20": ("p0", "new"), "k21": ("p1", "new")}


def delete(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    table.delete(stream(meanwhile, [row(0, 2), row(2, 2)], [row(3, 2)]), options={**QUICK, **options})
    return dict.fromkeys(("k0", "k2", "k3"), ("", ""))


def overwrite(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    table.insert_overwrite(stream(meanwhile, [row(0, 2, "new")], [row(20, 2, "new")]), {**QUICK, **options})
    return {**dict.fromkeys(("k2", "k4", "k6"), ("", "")), "k0": ("p0", "new"), "k20": ("p0", "new")}


def merge(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    table.merge(
        stream(meanwhile, [row(0, 2, "new")], [row(20, 2, "new")]),
        on=["id", "part"],
        when_matched=Update(),
        when_not_matched=Insert(),
        options={**QUICK, **options},
    )
    return {"k0": ("p0", "new"), "k20": ("p0", "new")}


@dataclass
class Now:
    """What happens right before a write begins: for writes without rows."""

    monkeypatch: pytest.MonkeyPatch

    def happen(self, meanwhile: Meanwhile) -> None:
        serve = commit_records.run_metadata_services

        def first(*arguments: Any) -> None:
            self.monkeypatch.setattr(commit_records, "run_metadata_services", serve)
            meanwhile()
            serve(*arguments)

        self.monkeypatch.setattr(commit_records, "run_metadata_services", first)


def update(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    with pytest.MonkeyPatch.context() as patch:
        Now(patch).happen(meanwhile)
        table.update({"name": "'new'", "ts": "ts + 1"}, "id in ('k0', 'k3')", options={**QUICK, **options})
    return {"k0": ("p0", "new"), "k3": ("p1", "new")}


def delete_where(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    with pytest.MonkeyPatch.context() as patch:
        Now(patch).happen(meanwhile)
        table.delete(where="id in ('k0', 'k3')", options={**QUICK, **options})
    return dict.fromkeys(("k0", "k3"), ("", ""))


def delete_partition(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    with pytest.MonkeyPatch.context() as patch:
        Now(patch).happen(meanwhile)
        table.delete_partition(["p1"], options={**QUICK, **options})
    return dict.fromkeys(("k1", "k3", "k5", "k7"), ("", ""))


WRITES = (upsert, insert, bulk_insert, delete, overwrite, merge, update, delete_where, delete_partition)
QUICK_CASES = {
    ("record_index", "upsert", "v9-mor-part"),
    ("record_index", "delete", "v6-cow-part"),
    ("record_index", "overwrite", "v8-mor-part"),
    ("secondary", "update", "v9-cow-part"),
    ("expression", "merge", "v8-cow-part"),
    ("bloom_filters", "upsert", "v6-mor-part"),
    ("column_stats", "merge", "v6-cow-part"),
    ("partition_stats", "upsert", "v9-mor-part"),
}


def cases() -> Iterator[Any]:
    for index in BUILDS:
        for write in WRITES:
            for version in (9, 8, 6):
                for merge_on_read in (True, False):
                    kind = Kind(version, merge_on_read)
                    if version == 6 and index in ("secondary", "expression", "partition_stats"):
                        continue  # that version has none
                    case = (index, write.__name__, str(kind))
                    marks = () if case in QUICK_CASES else pytest.mark.thorough
                    yield pytest.param(index, write, kind, id="-".join(case), marks=marks)


def make(base: Path, kind: Kind) -> tuple[HoodieTable, Contents]:
    kind.create(base)
    table = HoodieTable.open(base)
    table.upsert([row(number) for number in range(8)], QUICK)
    return table, {f"k{number}": (f"p{number % 2}", "a") for number in range(8)}


def expect(before: Contents, changes: Contents) -> Contents:
    return {key: value for key, value in {**before, **changes}.items() if value[1]}


def check(base: Path, expected: Contents) -> None:
    """The rows, by filters too, no index that lies, and keys that are there once after the next write."""
    table = HoodieTable.open(base)
    assert read(table) == expected
    for name in ("a", "new"):
        wanted = sorted(key for key, value in expected.items() if value[1] == name)
        for text in (f"name = '{name}'", f"upper(name) = '{name.upper()}'"):
            assert sorted(table.scan(["id"], filter=text).to_arrow()["id"].to_pylist()) == wanted
    for key in (*expected, "k0", "k20"):
        assert table.scan(filter=f"id = '{key}'").count() == (key in expected)
    report = table.verify()
    assert report.is_right, str(report)
    known = [{**row(int(key[1:]), 9, "later"), "part": part} for key, (part, _) in expected.items()]
    table.upsert([*known, row(0, 9, "later"), row(20, 9, "later")], BY_INDEX)
    assert read(table) == {**{key: (part, "later") for key, (part, _) in expected.items()}} | {
        "k0": ("p0", "later"),
        "k20": ("p0", "later"),
    }
    assert table.verify().is_right


def read(table: HoodieTable) -> Contents:
    rows = table.scan(["id", "part", "name"]).to_arrow().to_pylist()
    found = {each["id"]: (each["part"], each["name"]) for each in rows}
    assert len(found) == len(rows), sorted(each["id"] for each in rows)
    return found


@pytest.mark.parametrize(("index", "write", "kind"), list(cases()))
def test_an_index_that_is_built_before_a_write_begins_has_its_rows(
    index: str, write: Callable[[HoodieTable, Meanwhile], Contents], kind: Kind, tmp_path: Path
) -> None:
    table, before = make(tmp_path, kind)
    for name in BEFORE.get(index, ()):
        table.index.build(name, options=QUICK)
    changes = write(table, lambda: hoodie("index", tmp_path, "build", *BUILDS[index]))
    check(tmp_path, expect(before, changes))
