"""IndexTests: what each index of the metadata table must pass, and the indexes.

An index follows every write, equals a build of the same table, is found out if it lies, and is undone with its commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.writer.indexes.verify_report import PartReport
from tests.watched_requests import meeting_request, writes
from tests.writer.compaction_tables import QUICK, copied
from tests.writer.faulty_files import Killed
from tests.writer.index_jobs.indexed_tables import make_table, read_index
from tests.writer.written_tables import Kind, row

OPTIONS = {**QUICK, "hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}
Content = dict[str, Any]
Step = Callable[[HoodieTable], object]

STEPS: list[Step] = [
    lambda table: table.upsert([row(i, 5, "c") for i in (0, 1, 30, 31)], options=OPTIONS),
    lambda table: table.delete(["k7", "k30", "nothing"], options=OPTIONS),
    lambda table: table.compact(options=OPTIONS),
    lambda table: table.upsert([row(30, 6, "back"), {**row(32), "part": "p7"}], options=OPTIONS),
    lambda table: table.insert_overwrite([row(2, 9, "over"), row(40)], options=OPTIONS),
    lambda table: table.clean(1, options=OPTIONS),
    lambda table: table.delete("part = 'p7'", options=OPTIONS),
    lambda table: table.upsert([row(33, 9, None), row(1, 9, "last")], options=OPTIONS),
]


class IndexTests:
    """What an index must pass. A subclass names it, and says how it is built and what a lie of it looks like."""

    name: ClassVar[str]
    kind: ClassVar[Kind] = Kind(9, True)
    needs: ClassVar[tuple[str, ...]] = ()
    arguments: ClassVar[dict[str, Any]] = {}
    found: ClassVar[set[tuple[str, str]]]
    """The problems, and their places, that a check finds after ``lie``."""
    text: ClassVar[str] = ""
    """What each finding says."""

    def build(self, table: HoodieTable) -> None:
        table.index.build(self.name, **self.arguments, options=OPTIONS)

    def make(self, base: Path) -> HoodieTable:
        table = make_table(self.kind, base)
        for each in self.needs:
            table.index.build(each, options=OPTIONS)
        self.build(table)
        return table

    def read(self, base: Path) -> Content:
        """The entries by key, without the times when they were written."""
        return {each["key"]: found for each in read_index(base, self.name).to_pylist() if (found := describe(each))}

    def lie(self, table: HoodieTable, base: Path) -> None:
        """Let the index miss an update, an insert and a delete: their entries disappear."""
        folder = base / ".hoodie/metadata" / self.name
        before = set(folder.iterdir())
        table.upsert([row(0, 5, "zzz"), row(40, 1, "new")], options=QUICK)
        table.delete(["k7"], options=QUICK)
        for path in set(folder.iterdir()) - before:
            path.unlink()

    def test_it_follows_every_write_and_equals_a_build(self, tmp_path: Path) -> None:
        base = tmp_path / "t"
        table = self.make(base)
        for step in STEPS if self.kind.merge_on_read else [*STEPS[:2], *STEPS[3:]]:
            step(table.refresh())
            report = table.refresh().verify(data=False)
            assert report.is_right, str(report)
            part = next(each for each in report.parts if each.name == self.name)
            self.check_count(part.checked, self.read(base))
        again = HoodieTable.open(copied(base, tmp_path / "again"))
        again.index.drop(self.name, options=OPTIONS)
        for each in self.needs:
            if each not in again.refresh().config.metadata_partitions:
                again.index.build(each, options=OPTIONS)
        self.build(again)
        self.check_equal(self.read(base), self.read(tmp_path / "again"))

    def check_equal(self, kept: Content, built: Content) -> None:
        assert kept == built

    def check_count(self, checked: int, content: Content) -> None:
        assert checked == len(content)

    def tell_lie(self, base: Path) -> PartReport:
        """Return what a check says of the index after a lie."""
        table = self.make(base)
        assert table.verify(data=False).is_right
        self.lie(table, base)
        report = HoodieTable.open(base).verify(data=False)
        assert not report.is_right
        return next(each for each in report.parts if each.name == self.name)

    def test_a_lie_is_found(self, tmp_path: Path) -> None:
        part = self.tell_lie(tmp_path / "t")
        assert {(each.problem, self.shorten(each.place)) for each in part.findings} == self.found
        assert part.wrong == len(part.findings)
        assert all(self.text in each.text for each in part.findings)

    def shorten(self, place: str) -> str:
        """Leave out of a place the names of files, which are random."""
        return place

    def test_it_is_undone_with_its_commit(self, tmp_path: Path) -> None:
        table = self.make(tmp_path / "t")
        before = self.read(tmp_path / "t")
        rows = [row(0, 9, "zz"), row(50, 9, "new"), {**row(51, 9), "part": "p7"}]
        seen = set[str]()

        def die() -> None:
            seen.update(path.name for path in (tmp_path / "t/.hoodie/metadata" / self.name).iterdir())
            raise Killed

        files = {path.name for path in (tmp_path / "t/.hoodie/metadata" / self.name).iterdir()}
        completed = writes(r"/t/\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$")
        with pytest.raises(Killed), meeting_request(completed, before=die):
            table.upsert(rows, options=OPTIONS)
        assert seen > files
        [pending] = table.refresh().timeline.select_pending()
        table.rollback(pending.request_time, OPTIONS)
        assert self.read(tmp_path / "t") == before
        assert table.refresh().verify(data=False).is_right


def describe(entry: dict[str, Any]) -> Any:
    """Return what an entry says, without the time when it was written; nothing for a deleted one."""
    if entry["filesystemMetadata"] is not None:
        return {name: each["size"] for name, each in entry["filesystemMetadata"] if not each["isDeleted"]}
    said = {
        name: {key: value for key, value in each.items() if key not in ("timestamp", "instantTime")}
        for name, each in entry.items()
        if isinstance(each, dict)
    }
    return None if any(each.get("isDeleted") for each in said.values()) else said


class TestFiles(IndexTests):
    name = "files"
    found: ClassVar = {("missing", "p0"), ("missing", "p1")}

    def shorten(self, place: str) -> str:
        return place.partition("/")[0]

    def check_count(self, checked: int, content: Content) -> None:
        assert checked == sum(map(len, content.values()))


class TestColumnRanges(IndexTests):
    name = "column_stats"
    found: ClassVar = {("wrong", "p0 name")}

    def lie(self, table: HoodieTable, base: Path) -> None:
        """Change values of a base file."""
        path = next((base / "p0").glob("*.parquet"))
        rows = pq.read_table(path)
        names = pa.array(["zzz"] * len(rows))
        pq.write_table(rows.set_column(rows.schema.get_field_index("name"), "name", names), path)

    def shorten(self, place: str) -> str:
        return f"{place.partition('/')[0]} {place.rpartition(' ')[2]}"


class TestColumnRangesOfVersion6(TestColumnRanges):
    kind = Kind(6, True)


class TestPartitionRanges(IndexTests):
    name = "partition_stats"
    needs = ("column_stats",)
    found: ClassVar = {("wrong", f"p0 {column}") for column in ("ts", "name", "_hoodie_commit_time")}


class TestBlooms(IndexTests):
    name = "bloom_filters"
    kind = Kind(9, False)
    found: ClassVar = {("missing", "")}

    def shorten(self, place: str) -> str:
        return ""


class TestBloomsOfVersion6(TestBlooms):
    kind = Kind(6, False)


class TestRecordKeys(IndexTests):
    name = "record_index"
    found: ClassVar = {("missing", "k40"), ("extra", "k7")}


class TestPartitionedRecordKeys(IndexTests):
    name = "record_index"
    arguments: ClassVar = {"partitioned": True}
    found: ClassVar = {("missing", "p0/k40"), ("extra", "p1/k7")}


class TestSecondaryKeys(IndexTests):
    name = "secondary_index_by_name"
    needs = ("record_index",)
    arguments: ClassVar = {"column": "name"}
    found: ClassVar = {("missing", "new$k40"), ("missing", "zzz$k0"), ("extra", "b$k0"), ("extra", "a$k7")}


class ExpressionTests(IndexTests):
    """An index of an expression. It lies if its definition is changed to another function.

    A build describes only the files that readers see, as Java's; the kept index has entries of older files, too.
    """

    def check_equal(self, kept: Content, built: Content) -> None:
        assert built
        assert {key: kept.get(key) for key in built} == built

    def check_count(self, checked: int, content: Content) -> None:
        assert 0 < checked <= len(content)

    def test_every_entry_of_another_function_is_wrong(self, tmp_path: Path) -> None:
        part = self.tell_lie(tmp_path / "t")
        assert part.wrong == part.checked

    def lie(self, table: HoodieTable, base: Path) -> None:
        path = base / ".hoodie/.index_defs/index.json"
        content = json.loads(path.read_text())
        content["indexDefinitions"][self.name]["indexFunction"] = "upper"
        path.write_text(json.dumps(content))

    def shorten(self, place: str) -> str:
        return "".join(place.partition("/")[:2])


class TestExpressionRanges(ExpressionTests):
    name = "expr_index_low"
    arguments: ClassVar = {"column": "name", "function": "lower"}
    found: ClassVar = {("wrong", place) for place in ("p0", "p0/", "p1", "p1/")}
    text = "the data has"


class TestExpressionBlooms(ExpressionTests):
    name = "expr_index_low"
    kind = Kind(9, False)
    arguments: ClassVar = {"column": "id", "function": "lower", "kind": "bloom_filters"}
    found: ClassVar = {("wrong", "p0/"), ("wrong", "p1/")}
    text = "the filter lacks"
