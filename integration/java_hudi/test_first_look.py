"""Java Hudi builds an index, or alters the table, between the first look of a write here and its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieTable
from hoodie_py.formats.timeline.instants import INDEXING
from integration.java_hudi.session import JavaSession
from tests.writer.commit.test_first_look import check, expect, read, stream
from tests.writer.slow_writes import slowly
from tests.writer.written_tables import Kind, records, row

OURS = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
ON_READ = {"hoodie.schema.on.read.enable": "true"}
INDEXES = {
    "record_index": "create index record_index on looked (id)",
    "secondary": "create index by_name on looked (name)",
    "expression": "create index by_upper on looked using column_stats(name) options(expr='upper')",
}
CHANGES = {"k0": ("p0", "new"), "k20": ("p0", "new")}


@dataclass(frozen=True, slots=True)
class Looked:
    """A table of ours, in Java's catalog as ``looked``."""

    java: JavaSession
    base: Path
    kind: Kind

    def begin(self, index: str = "") -> dict[str, tuple[str, str]]:
        """Make it, with what an index needs."""
        self.kind.create(self.base)
        table = HoodieTable.open(self.base)
        table.upsert([row(number) for number in range(8)], OURS)
        table.index.build("record_index" if index == "secondary" else "files", options=OURS)
        self.java.sql("drop table if exists looked")
        self.java.sql(f"create table looked using hudi location '{self.base}'")
        return read(table.refresh())

    def run(self, text: str, settings: Mapping[str, str] = OURS) -> None:
        """Have Java run a statement; by default beside declared writers."""
        given = {**settings, "hoodie.metadata.enable": "true"}
        given |= {"hoodie.write.table.version": str(self.kind.version), "hoodie.write.auto.upgrade": "false"}
        with self.java.configured(given):
            self.java.sql(text)

    def check(self, expected: dict[str, tuple[str, str]], *, by_name: bool = True) -> None:
        """The rows by both engines, the indexes, and an upsert by the record index; of Java's reads by a column not
        those of one with an expression index, as Java takes it for that of any function.
        """
        theirs = self.java.read(self.base).to_pylist()
        assert {each["id"]: (each["part"], each["name"]) for each in theirs} == expected
        assert len(theirs) == len(expected)
        for name in {each for _, each in expected.values() if by_name}:
            found = self.java.read(self.base, where=f"name = '{name}'")
            assert sorted(found["id"].to_pylist()) == sorted(key for key, each in expected.items() if each[1] == name)
        check(self.base, expected)

    def wait_for_indexer(self, running: Future[None], partition: str) -> None:
        """Wait until Java's indexer names the partition, so that it waits for the writes that are pending."""
        until = time.monotonic() + 300
        while time.monotonic() < until and not running.done():
            table = HoodieTable.open(self.base)
            begun = len(table.timeline.select_pending().select_actions(INDEXING))
            if begun and partition in table.config.metadata_partitions:
                return
            time.sleep(0.1)
        running.result(0)
        raise AssertionError("Java built the index and did not wait for the write")


@pytest.fixture
def looked(java: JavaSession, tmp_path: Path) -> Iterator[Callable[[Kind], Looked]]:
    yield lambda kind: Looked(java, tmp_path / "table", kind)
    java.sql("drop table if exists looked")


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(9, False), Kind(8, True), Kind(8, False)], ids=str)
@pytest.mark.parametrize("index", INDEXES)
def test_an_index_that_java_builds_before_our_write_begins_has_its_rows(
    looked: Callable[[Kind], Looked], index: str, kind: Kind
) -> None:
    lake = looked(kind)
    before = lake.begin(index)
    rows = stream(lambda: lake.run(INDEXES[index]), [row(0, 2, "new")], [row(20, 2, "new")])
    HoodieTable.open(lake.base).upsert(rows, OURS)
    lake.check(expect(before, CHANGES), by_name=index != "expression")


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(8, False)], ids=str)
@pytest.mark.parametrize("index", INDEXES)
def test_an_index_that_java_builds_beside_our_begun_write_has_its_rows(
    looked: Callable[[Kind], Looked], index: str, kind: Kind
) -> None:
    lake = looked(kind)
    before = lake.begin(index)
    partition = {"secondary": "secondary_index_by_name", "expression": "expr_index_by_upper"}.get(index, index)
    with ThreadPoolExecutor(1) as pool:
        begun: list[Future[None]] = []

        def meanwhile() -> None:
            begun.append(pool.submit(lake.run, INDEXES[index]))
            lake.wait_for_indexer(begun[0], partition)

        slowly(lake.base, records([row(0, 2, "new"), row(20, 2, "new")]), meanwhile, **OURS)
        begun[0].result()
    assert partition in HoodieTable.open(lake.base).config.metadata_partitions
    lake.check(expect(before, CHANGES), by_name=index != "expression")


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(8, False), Kind(6, True)], ids=str)
def test_columns_that_java_alters_before_our_write_begins_are_a_conflict(
    looked: Callable[[Kind], Looked], kind: Kind
) -> None:
    lake = looked(kind)
    before = lake.begin()

    def write(meanwhile: Callable[[], Any]) -> None:
        rows = stream(meanwhile, [row(0, 2, "new")], [row(20, 2, "new")])
        HoodieTable.open(lake.base).upsert(rows, {**OURS, "hoodie.write.set.null.for.missing.columns": "true"})

    with pytest.raises(ConflictError, match="columns were altered"):
        write(lambda: lake.run("alter table looked add columns (price double)", ON_READ))
    assert read(HoodieTable.open(lake.base)) == before
    write(lambda: None)
    table = HoodieTable.open(lake.base)
    assert "price" in table.schema.names
    theirs = lake.java.read(lake.base, **{"hoodie.schema.on.read.enable": "true"}).to_pylist()
    assert {each["id"]: (each["part"], each["name"]) for each in theirs} == read(table) == expect(before, CHANGES)
    assert table.verify().is_right


def test_a_version_to_which_java_brings_the_table_before_our_write_begins_is_a_conflict(
    looked: Callable[[Kind], Looked],
) -> None:
    lake = looked(Kind(8, False))
    before = lake.begin()
    theirs = pa.Table.from_pylist([row(3, 2, "theirs")])
    options = {
        "hoodie.table.name": lake.base.name, "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part", "hoodie.table.ordering.fields": "ts",
        "hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": "9", **OURS,
    }  # fmt: skip
    rows = stream(lambda: lake.java.write(lake.base, theirs, options), [row(0, 2, "new")], [row(20, 2, "new")])
    with pytest.raises(ConflictError, match="version changed from 8 to 9"):
        HoodieTable.open(lake.base).upsert(rows, OURS)
    lake.check(expect(before, {"k3": ("p1", "theirs")}))
