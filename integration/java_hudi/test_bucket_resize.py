"""Java Hudi and this package take turns at buckets of consistent hashing: what either plans and resizes, the other goes
on with.

Every step compares all rows with a model of them, by Java's read and by ours, and looks whether each key lies in the
file group of its range: where Java and we look for it next.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from hoodie_py.formats.config.hashing_metadata import CONSISTENT_FOLDER, GroupResize
from hoodie_py.writer.index.bucket import find_hash_ranges
from hoodie_py.writer.transaction.hash_ranges import load_hash_ranges
from integration.java_hudi.session import JavaSession

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("name", pa.string())])
COUNT, MOST, LEAST = (f"hoodie.bucket.index.{name}num.buckets" for name in ("", "max.", "min."))
SPLIT, MERGE = (f"hoodie.bucket.index.{name}.threshold" for name in ("split", "merge"))
INDEX = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING", COUNT: "4"}
GROW = {MOST: "8", LEAST: "8", SPLIT: "0.0000001", MERGE: "0.2"}  # above COUNT, LEAST means COUNT
SHRINK = {MOST: "8", LEAST: "2", SPLIT: "1000", MERGE: "1000"}
_CLUSTERING = "org.apache.hudi.client.clustering"
BOTH = f"{_CLUSTERING}.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
SEVERAL_JOBS = f"{_CLUSTERING}.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
Row = tuple[str, str, int, str]


@dataclass
class Table:
    """A table of one test; ``rows`` are what must be in it: version and name by partition and id."""

    java: JavaSession
    path: Path
    version: int
    metadata: bool
    rows: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    @property
    def services(self) -> dict[str, str]:
        """Java's options for table services."""
        return {
            **INDEX,
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": str(self.metadata).lower(),
            "hoodie.datasource.write.recordkey.field": "id",
        }

    def write(self, rows: list[Row], *, mode: str = "append", operation: str = "upsert", **more: str) -> None:
        """Have Java write rows."""
        options = {
            **self.services,
            "hoodie.table.name": "buckets",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.compact.inline": "false",
            "hoodie.upsert.shuffle.parallelism": "1",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        self.java.write(self.path, _table(rows), options, mode=mode, operation=operation)
        self.note(rows, deleted=operation == "delete")

    def note(self, rows: list[Row], *, deleted: bool = False) -> None:
        for id_, part, ts, name in rows:
            if deleted:
                self.rows.pop((part, id_), None)
            else:
                self.rows[part, id_] = (ts, name)

    def change(self, ts: int, **more: str) -> None:
        """Have Java update every second row, insert some, and delete one."""
        known = sorted(self.rows)
        new = [(f"j{ts}-{n}", f"p{n % 2}", ts, f"j{ts}") for n in range(6)]
        self.write([*((id_, part, ts, f"j{ts}") for part, id_ in known[::2]), *new], **more)
        part, id_ = known[ts % len(known)]
        self.write([(id_, part, ts, "gone")], operation="delete", **more)

    def change_ours(self, ts: int) -> None:
        """We update every third row, insert some, also into a new partition, and delete one."""
        known, table = sorted(self.rows), HoodieTable.open(self.path)
        new = [(f"o{ts}-{n}", part, ts, f"o{ts}") for n in range(6) for part in ("p0", "p1", f"ours{ts}")]
        rows = [*((id_, part, ts, f"o{ts}") for part, id_ in known[::3]), *new]
        table.upsert(_table(rows), {COUNT: "4"})
        self.note(rows)
        part, id_ = known[ts % len(known)]
        table.delete(_table([(id_, part, ts, "gone")]))
        self.note([(id_, part, ts, "gone")], deleted=True)

    def cluster(self, options: dict[str, str], step: str = "scheduleAndExecute", instant: str | None = None) -> str:
        """Have Java plan a clustering, carry one out, or both."""
        done = self.java.clustering(self.path, {**self.services, **options}, step, instant)
        assert done is not None
        return done

    def check(self, count: int | None = None) -> None:
        """Compare all reads with the model; ``count`` is the number of ranges of the first partitions."""
        table = HoodieTable.open(self.path)
        for found in (self.java.read(self.path), table.scan().to_arrow()):
            rows = found.to_pylist()
            assert max(Counter((row["part"], row["id"]) for row in rows).values()) == 1
            assert {(row["part"], row["id"]): (row["ts"], row["name"]) for row in rows} == self.rows
        for part in {row["part"] for row in rows}:
            ranges = load_hash_ranges(table._snapshot, part)
            assert ranges is not None
            if count is not None and part in ("p0", "p1"):
                assert len(ranges.bounds) == count
            own = [row for row in rows if row["part"] == part]
            keys = pa.chunked_array([[row["_hoodie_record_key"] for row in own]])
            places = find_hash_ranges(keys, (), ranges.bounds).tolist()
            names = [row["_hoodie_file_name"] for row in own]
            assert all(name.startswith(ranges.file_ids[at]) for name, at in zip(names, places, strict=True))
        if self.metadata:
            assert self.java.wrong_metadata(self.path) == []
            report = table.verify(data=False)
            assert report.is_right, str(report)

    def go_on(self, ts: int, count: int) -> None:
        """Both write, Java compacts, both cluster."""
        self.change(ts)
        self.check(count)
        self.change_ours(ts + 1)
        self.java.run_compaction(self.path, self.services)
        self.check(count)
        self.cluster(SHRINK)
        self.check(2)
        self.change_ours(ts + 2)
        HoodieTable.open(self.path).cluster(options={**INDEX, **GROW})
        self.change(ts + 3)
        self.check(4)


def _table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


KINDS = [(9, True), (9, False), (8, True), (6, True), (6, False)]


@pytest.fixture(params=KINDS, ids=lambda kind: f"v{kind[0]}-{'mdt' if kind[1] else 'nomdt'}")
def table(request: pytest.FixtureRequest, java: JavaSession, tmp_path: Path) -> Table:
    """A table that Java made, with log files in its buckets."""
    version, metadata = request.param
    made = Table(java, tmp_path / "table", version, metadata)
    made.write([(f"k{n}", f"p{n % 2}", 1, "first") for n in range(80)], mode="overwrite")
    made.change(2)
    return made


def test_we_plan_and_resize_and_java_goes_on(table: Table) -> None:
    result = HoodieTable.open(table.path).cluster(options={**INDEX, **GROW})
    assert result.groups_replaced == 8
    table.check(8)
    table.go_on(4, 8)


def test_java_plans_and_we_resize(table: Table) -> None:
    instant = table.cluster(GROW, "schedule")
    with pytest.raises(ConflictError, match="pending clustering"):
        table.change_ours(3)
    assert HoodieTable.open(table.path).run_clustering().instant == instant
    table.check(8)
    table.go_on(4, 8)


@pytest.mark.parametrize("execution", [None, SEVERAL_JOBS], ids=["one-job", "several-jobs"])
def test_we_plan_and_java_resizes(table: Table, execution: str | None) -> None:
    named = {} if execution is None else {"hoodie.clustering.execution.strategy.class": execution}
    instant = HoodieTable.open(table.path).schedule_clustering({**INDEX, **GROW, **named})
    assert instant is not None
    assert table.cluster({**GROW, **named}, "execute", instant) == instant
    table.check(8)
    table.go_on(4, 8)


def test_java_resizes_and_we_go_on(table: Table) -> None:
    table.cluster(GROW)
    table.change_ours(3)
    table.check(8)
    HoodieTable.open(table.path).cluster(options={**INDEX, **SHRINK})
    table.check(2)
    table.go_on(4, 2)


def test_plans_are_those_of_java(table: Table) -> None:
    for options in (GROW, SHRINK, {**GROW, SPLIT: "1000"}):
        other = table.path.with_name("other")
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(table.path, other)
        ours = HoodieTable.open(other).schedule_clustering({**INDEX, **options})
        assert ours is not None
        shutil.rmtree(table.path.with_name("java"), ignore_errors=True)
        theirs = Table(table.java, shutil.copytree(table.path, table.path.with_name("java")), table.version, False)
        theirs.cluster(options, "schedule")
        assert _describe(other) == _describe(theirs.path)


def _describe(path: Path) -> Any:
    """What a pending plan does: the file groups of each of its groups, and the bounds that change."""
    snapshot = HoodieTable.open(path)._snapshot
    [pending] = snapshot.timeline.select_pending_replacements()
    found = []
    for group in snapshot.timeline.read_replace_plan(pending).groups or ():
        resize = GroupResize.from_extra(group.extra)
        assert resize is not None
        changes = [(each.bound, each.file_id is None) for each in resize.changes]
        files = [(piece.file_id, piece.data_file, sorted(piece.delta_files)) for piece in group.slices]
        found.append((resize.partition_path, resize.number, group.num_output_file_groups, files, changes))
    return sorted(found)


def test_a_resize_that_we_roll_back_leaves_nothing_to_java(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = HoodieTable.open(table.path)
    instant = ours.schedule_clustering({**INDEX, **GROW})
    assert instant is not None
    with monkeypatch.context() as patched:
        patched.setattr("hoodie_py.writer.clustering.cluster.Clustering.make_content", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ours.run_clustering(instant)
    HoodieTable.open(table.path).rollback(instant)
    assert {each.stem for each in (table.path / CONSISTENT_FOLDER).rglob("*.hashing_meta")} == {"0" * 14}
    table.check(4)
    table.go_on(4, 4)


@pytest.mark.parametrize("who", ["ours", "java"])
def test_java_writes_beside_a_pending_resize(table: Table, who: str) -> None:
    """Into the old bucket and the new one, of which nobody reads the second before the resize is complete."""
    instant = HoodieTable.open(table.path).schedule_clustering({**INDEX, **GROW})
    assert instant is not None
    table.change(3, hoodie__clustering__updates__strategy=BOTH)
    table.check()
    if who == "ours":
        assert HoodieTable.open(table.path).run_clustering(instant).instant == instant
    else:
        table.cluster(GROW, "execute", instant)
    table.check()
    table.go_on(5, 8)


def test_we_roll_back_a_resize_that_java_wrote_beside(table: Table) -> None:
    instant = HoodieTable.open(table.path).schedule_clustering({**INDEX, **GROW})
    assert instant is not None
    table.change(3, hoodie__clustering__updates__strategy=BOTH)
    HoodieTable.open(table.path).rollback(instant)
    table.check(4)
    table.go_on(5, 4)
