"""What another process changes between the first look of a write and its beginning, or its commit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, Insert, Update
from hoodie_py.errors import ConflictError, InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.hashing_metadata import RULES_FOLDER
from hoodie_py.formats.config.table_config import CDC_ENABLED, PARTITION_EXTRACTOR
from hoodie_py.writer.alter import alter
from hoodie_py.writer.index_jobs import table_indexes
from hoodie_py.writer.index_jobs.build import build_partition
from hoodie_py.writer.index_jobs.requests import define_index
from hoodie_py.writer.pipeline import write as write_module
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.services import clean
from hoodie_py.writer.timeline.table_properties import change_properties
from tests.writer.compaction_tables import QUICK, leftovers
from tests.writer.pipeline.engines import Meanwhile as Interrupted
from tests.writer.pipeline.engines import write_by
from tests.writer.slow_writes import pending, slowly
from tests.writer.written_tables import SCHEMA, Kind, Row, records, row, session

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
    module: Any = write_module

    def happen(self, meanwhile: Meanwhile) -> None:
        serve = self.module.run_metadata_services

        def first(*arguments: Any) -> None:
            self.monkeypatch.setattr(self.module, "run_metadata_services", serve)
            meanwhile()
            serve(*arguments)

        self.monkeypatch.setattr(self.module, "run_metadata_services", first)


def update(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    with pytest.MonkeyPatch.context() as patch:
        Now(patch).happen(meanwhile)
        table.update({"name": "'new'", "ts": "ts + 1"}, "id in ('k0', 'k3')", options={**QUICK, **options})
    return {"k0": ("p0", "new"), "k3": ("p1", "new")}


def delete_where(table: HoodieTable, meanwhile: Meanwhile, **options: Any) -> Contents:
    with pytest.MonkeyPatch.context() as patch:
        Now(patch).happen(meanwhile)
        table.delete("id in ('k0', 'k3')", options={**QUICK, **options})
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
    ("secondary", "update", "v9-cow-part"),
    ("expression", "merge", "v8-cow-part"),
    ("bloom_filters", "upsert", "v6-mor-part"),
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


# Indexes that go, and the metadata table itself --------------------------------------------------------------------

LATER_KINDS = [Kind(8, False), Kind(6, True), Kind(6, False)]
CHANGES = {
    "an index goes": (["record_index", "column_stats"], [("drop", "column_stats")]),
    "the metadata table comes": ([], [("build", "files")]),
    "the metadata table goes": (["record_index"], [("drop", "files")]),
    "the metadata table is made anew": (["record_index"], [("drop", "files"), ("build", "record_index")]),
    "an index becomes another": (
        ["record_index", "by_name"], [("drop", "by_name"), ("build", "by_name", "--column", "id")]
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", [Kind(9, True), *(pytest.param(each, marks=pytest.mark.thorough) for each in LATER_KINDS)], ids=str
)
@pytest.mark.parametrize("change", CHANGES)
def test_what_becomes_of_the_metadata_table_before_a_write_begins_is_taken_over(
    change: str, kind: Kind, tmp_path: Path
) -> None:
    there, steps = CHANGES[change]
    if kind.version == 6 and "by_name" in there:
        pytest.skip("that version has no secondary index")
    table, before = make(tmp_path, kind)
    for name in there:
        table.index.build(name, "name" if name == "by_name" else None, options=QUICK)

    def meanwhile() -> None:
        for action, name, *more in steps:
            other = HoodieTable.open(tmp_path)
            if action == "drop":
                other.index.drop(name, options=QUICK)
            else:
                other.index.build(name, *more[1:], options=QUICK)

    changes = upsert(table, meanwhile)
    check(tmp_path, expect(before, changes))


# Properties, columns, the index of the table -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Kind(8, False), ["upgrade", "--to", "9"]),
        pytest.param(Kind(6, True), ["upgrade", "--to", "8"], marks=pytest.mark.thorough),
        pytest.param(Kind(9, True), ["downgrade", "--to", "8"], marks=pytest.mark.thorough),
        pytest.param(Kind(8, True), ["downgrade", "--to", "6"], marks=pytest.mark.thorough),
        pytest.param(Kind(9, False), ["alter", "--add", "price=double"], marks=pytest.mark.thorough),
    ],
    ids=str,
)
@pytest.mark.parametrize("write", [upsert, *(pytest.param(each, marks=pytest.mark.thorough) for each in WRITES[1:])])
def test_a_table_that_becomes_another_before_a_write_begins_is_a_conflict(
    write: Callable[[HoodieTable, Meanwhile], Contents], kind: Kind, arguments: list[str], tmp_path: Path
) -> None:
    table, before = make(tmp_path, kind)
    with pytest.raises(ConflictError, match="Run it again"):
        write(table, lambda: hoodie(arguments[0], tmp_path, *arguments[1:]))
    assert (read(HoodieTable.open(tmp_path)), pending(tmp_path), leftovers(tmp_path)) == (before, [], [])
    if arguments[0] != "alter":  # the rows of these writes lack the new column
        changes = write(HoodieTable.open(tmp_path), lambda: None)
        assert read(HoodieTable.open(tmp_path)) == expect(before, changes)


PROPERTIES = {
    CDC_ENABLED: "true",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.table.ordering.fields": "name",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.table.keygenerator.type": "COMPLEX",
}


@pytest.mark.parametrize("key", PROPERTIES)
@pytest.mark.parametrize("begun", [False, True])
def test_a_property_that_changes_is_a_conflict(begun: bool, key: str, tmp_path: Path) -> None:
    table, _ = make(tmp_path, Kind(9, True))

    def change() -> None:
        change_properties(TableFiles.open(tmp_path), {key: PROPERTIES[key]})

    def write() -> None:
        if begun:
            slowly(tmp_path, records([row(0, 2, "new")]), change)
        else:
            upsert(table, change)

    with pytest.raises(ConflictError, match="properties changed") as caught:
        write()
    assert key in str(caught.value)
    assert (pending(tmp_path), leftovers(tmp_path)) == ([], [])


def test_a_property_for_catalogs_may_change(tmp_path: Path) -> None:
    table, before = make(tmp_path, Kind(9, True))
    changes = upsert(table, lambda: change_properties(TableFiles.open(tmp_path), {PARTITION_EXTRACTOR: "x"}))
    assert read(HoodieTable.open(tmp_path)) == expect(before, changes)


def test_an_index_that_goes_while_a_write_looks_keys_up_by_it_is_a_conflict(tmp_path: Path) -> None:
    table, before = make(tmp_path, Kind(9, True))
    table.index.build("record_index", options=QUICK)
    with pytest.raises(ConflictError, match="changed while it was read"):
        upsert(table, lambda: HoodieTable.open(tmp_path).index.drop("files", options=QUICK), **BY_INDEX)
    assert read(HoodieTable.open(tmp_path)) == before


def test_an_alteration_sees_the_indexes_that_were_built_since_it_looked(tmp_path: Path) -> None:
    table, _ = make(tmp_path, Kind(9, False))
    table.index.build("record_index", options=QUICK)
    with pytest.MonkeyPatch.context() as patch:
        build = HoodieTable.open(tmp_path).index.build
        Now(patch, alter).happen(lambda: build("by_name", "name", options=QUICK))
        with pytest.raises(InvalidQueryError, match="the index secondary_index_by_name is of it"):
            table.alter(drop=["name"], options=QUICK)


def test_an_empty_table_that_gets_another_index_is_a_conflict(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    buckets = {**QUICK, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    table = HoodieTable.open(tmp_path)

    def meanwhile() -> None:
        HoodieTable.open(tmp_path).upsert([row(number) for number in range(0, 60, 2)], buckets)

    with pytest.raises(ConflictError, match="index of the table"):
        table.upsert(stream(meanwhile, [row(1)], [row(3)]), QUICK)
    HoodieTable.open(tmp_path).upsert([row(1), row(3)], buckets)
    assert len(read(HoodieTable.open(tmp_path))) == 32


@pytest.mark.parametrize("begun", [False, True])
def test_other_rules_for_numbers_of_buckets_are_a_conflict(begun: bool, tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    table = HoodieTable.open(tmp_path)
    buckets = {**QUICK, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    table.upsert([row(number) for number in range(60)], buckets)

    def meanwhile() -> None:
        file = tmp_path / RULES_FOLDER / "00000000000000.hashing_config"
        file.parent.mkdir(parents=True)
        rules = {"expressions": "new,2", "defaultBucketNumber": 4, "rule": "regex", "version": 1, "instant": "0"}
        file.write_text(json.dumps(rules))

    rows = [{**row(number), "part": "new"} for number in range(60, 80)]
    given: Any = rows if begun else stream(meanwhile, rows[:1], rows[1:])
    with pytest.raises(ConflictError, match="numbers of buckets"):
        write_by(Interrupted(meanwhile) if begun else LocalEngine(), tmp_path, given, options=buckets)
    assert (pending(tmp_path), leftovers(tmp_path)) == ([], [])


# Beside an instant that has begun ------------------------------------------------------------------------------------


def build_beside(base: Path, name: str) -> None:
    """Build an index as an indexer does that waits for nobody."""
    doing = session(base)
    with doing.hold_lock() as holding:
        snapshot = doing.look()
        spec = BUILDS[name]
        column = None if len(spec) == 1 else spec[2]
        function = "upper" if name == "expression" else None
        partition, definition = define_index(snapshot, spec[0], column, function=function)
        build_partition(doing, snapshot, partition, definition, holding)


def make_indexed(base: Path, kind: Kind, index: str) -> tuple[HoodieTable, Contents]:
    table, before = make(base, kind)
    for name in ("files", *BEFORE.get(index, ())):
        table.index.build(name, options=QUICK)
    return table, before


def some(*quick: str) -> list[Any]:
    """All indexes; those that are not named are for the longer run."""
    return [pytest.param(each, marks=() if each in quick else pytest.mark.thorough) for each in BUILDS]


@pytest.mark.parametrize("kind", [Kind(9, True), pytest.param(Kind(8, False), marks=pytest.mark.thorough)], ids=str)
@pytest.mark.parametrize("index", some("record_index", "partition_stats"))
def test_an_index_that_is_built_beside_a_write_has_its_rows(index: str, kind: Kind, tmp_path: Path) -> None:
    _, before = make_indexed(tmp_path, kind, index)
    given = records([row(0, 2, "new"), row(20, 2, "new")])
    slowly(tmp_path, given, lambda: build_beside(tmp_path, index))
    check(tmp_path, expect(before, {"k0": ("p0", "new"), "k20": ("p0", "new")}))


def test_an_index_that_becomes_another_beside_a_write_has_its_rows(tmp_path: Path) -> None:
    table, before = make_indexed(tmp_path, Kind(9, True), "secondary")
    table.index.build("by_name", "part", options=QUICK)

    def meanwhile() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_indexes, "check_nothing_pending", lambda *_, **__: None)
            patch.setattr(table_indexes, "undo_failed_writes", lambda _: None)
            HoodieTable.open(tmp_path).index.drop("by_name", options=QUICK)
        build_beside(tmp_path, "secondary")

    slowly(tmp_path, records([row(0, 2, "new"), row(20, 2, "new")]), meanwhile)
    check(tmp_path, expect(before, {"k0": ("p0", "new"), "k20": ("p0", "new")}))


@dataclass
class SlowRunner:
    """Runs tasks; something else happens before."""

    meanwhile: Meanwhile

    def run(self, tasks: Any, on_rows: Any) -> Iterator[Any]:
        self.meanwhile()
        yield from LocalEngine(1).run(tasks, on_rows)


@pytest.mark.parametrize(
    ("service", "index"),
    [
        ("compaction", "bloom_filters"),
        ("clustering", "record_index"),
        *(
            pytest.param(service, index, marks=pytest.mark.thorough)
            for service in ("compaction", "clustering")
            for index in BUILDS
            if (service, index) not in {("compaction", "bloom_filters"), ("clustering", "record_index")}
        ),
    ],
)
def test_an_index_that_is_built_beside_a_service_has_its_files(service: str, index: str, tmp_path: Path) -> None:
    table, before = make_indexed(tmp_path, Kind(9, True), index)
    table.upsert([row(0, 2, "new")], QUICK)
    runner = SlowRunner(lambda: build_beside(tmp_path, index))
    if service == "compaction":
        table.run_compaction(table.schedule_compaction(options=QUICK), runner, QUICK)
    else:
        small = {**QUICK, "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
        table.run_clustering(table.schedule_clustering(options=small), runner, QUICK)
    check(tmp_path, expect(before, {"k0": ("p0", "new")}))


@pytest.mark.parametrize("index", ["column_stats", pytest.param("bloom_filters", marks=pytest.mark.thorough)])
def test_an_index_that_is_built_beside_a_clean_has_none_of_its_files(index: str, tmp_path: Path) -> None:
    table, before = make_indexed(tmp_path, Kind(9, False), index)
    for number in range(2, 5):
        table.upsert([row(0, number, "new")], QUICK)
    with pytest.MonkeyPatch.context() as patch:
        remove = clean._delete_files
        patch.setattr(clean, "_delete_files", lambda *given: (build_beside(tmp_path, index), remove(*given)))
        assert table.clean(1, options=QUICK).files_deleted
    check(tmp_path, expect(before, {"k0": ("p0", "new")}))


def test_no_index_is_built_or_dropped_beside_a_write_that_has_begun(tmp_path: Path) -> None:
    _, before = make_indexed(tmp_path, Kind(9, True), "secondary")

    def meanwhile() -> None:
        for arguments in (("build", "column_stats"), ("drop", "record_index")):
            with pytest.raises(AssertionError, match="keeps the instant alive"):
                hoodie("index", tmp_path, *arguments)

    slowly(tmp_path, records([row(0, 2, "new")]), meanwhile)
    check(tmp_path, expect(before, {"k0": ("p0", "new")}))
