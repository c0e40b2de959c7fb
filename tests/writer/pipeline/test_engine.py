"""What holds of every engine: the rows of a model, the counts of this process, and a table that a failure leaves."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import Delete, HoodieTable, Insert, Update
from hoodie_py.errors import ConflictError, HoodieError, InvalidQueryError
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.pipeline.engine import Engine
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.pipeline.modify import MergeRequest, Modifier
from hoodie_py.writer.services.service_run import Runner
from tests.writer.compaction_tables import QUICK, leftovers, orphans
from tests.writer.pipeline.engines import AfterKeys, Failing, Twice, write_by
from tests.writer.written_tables import SCHEMA, Kind

INDEXES: Mapping[str, Mapping[str, str]] = {
    "SIMPLE": {},
    "GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
}
# Versions, types and indexes hardly touch each other, so every pair of them is here once, not every combination. Some
# pairs are in `make thorough` only.
CASES = [
    *((Kind(9, True, True), index) for index in INDEXES),
    (Kind(9, False, True), "BUCKET"),
    (Kind(8, True, False), "GLOBAL_SIMPLE"),
    (Kind(6, False, False), "BUCKET"),
    (Kind(9, True, virtual=True), "SIMPLE"),
    *(
        pytest.param(*each, marks=pytest.mark.thorough)
        for each in [
            (Kind(9, False, False), "SIMPLE"),
            (Kind(8, False, True), "SIMPLE"),
            (Kind(6, True, True), "SIMPLE"),
            (Kind(8, True, virtual=True), "BUCKET"),
            (Kind(6, False, virtual=True), "GLOBAL_SIMPLE"),
        ]
    ),
]
ALLOW = {
    **QUICK,
    "hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
Model = dict[Any, tuple[Any, ...]]


def rows(numbers: Any, ts: int, name: str = "n", part: int | None = None) -> pa.Table:
    """Rows whose keys are numbers, in three partitions."""
    made = [
        {"id": f"k{each:03}", "part": f"p{(each if part is None else part) % 3}", "ts": ts, "name": f"{name}{each}"}
        for each in numbers
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def seen(where: Path) -> list[tuple[Any, ...]]:
    """The rows of a table, sorted."""
    table = HoodieTable.open(where).scan(SCHEMA.names).to_arrow()
    return sorted(tuple(row.values()) for row in table.to_pylist())


def steps(seed: int) -> list[tuple[str, pa.Table]]:
    """Return the operations with their data."""
    lot = random.Random(seed)
    some = sorted(lot.sample(range(90), 40))
    late = pa.concat_tables([rows(some, 20, "late"), rows(range(80, 120), 3), rows(range(80, 100), 3, "again")])
    return [
        ("upsert", rows(range(60), 5)),
        ("upsert", pa.concat_tables([rows(range(40, 90), 1, "old"), rows(range(30, 50), 6, "new")])),
        ("delete", rows(range(0, 30, 4), 30)),
        ("upsert", late),
        ("insert", rows(range(200, 210), 1)),
        ("bulk_insert", rows(range(210, 230), 1)),
        ("upsert", late.slice(0, 10)),
        ("insert_overwrite", rows(range(300, 320), 1, part=1)),
        ("upsert", rows(range(310, 330), 9, "after")),
        ("insert_overwrite_table", rows(range(15), 1)),
        ("upsert", rows(range(20), 2, "last")),
    ]


def change(model: Model, operation: str, data: pa.Table, *, by_key_alone: bool, partitioned: bool) -> None:
    """Do to a model what an operation does to a table: the greater ts wins, and of equal ones the later."""
    given = [tuple(row.values()) for row in data.to_pylist()]
    if operation == "insert_overwrite_table" or (operation == "insert_overwrite" and not partitioned):
        model.clear()
    elif operation == "insert_overwrite":
        gone = {row[1] for row in given}
        for key in [key for key, row in model.items() if row[1] in gone]:
            del model[key]
    for row in given:
        key = row[0] if by_key_alone or not partitioned else row[:2]
        if operation == "delete":
            model.pop(key, None)
        elif key not in model or row[2] >= model[key][2]:
            model[key] = row


@pytest.mark.filterwarnings("ignore:A heartbeat was not removed")
class EngineTests(ABC):
    """The tests. ``Engine`` says what an engine does."""

    @abstractmethod
    def engine(self) -> Engine:
        """Return the engine."""

    @abstractmethod
    def twice(self) -> Engine:
        """Return the engine, which writes every file twice."""

    @abstractmethod
    def failing(self) -> Engine:
        """Return the engine, whose tasks fail after they wrote their files."""

    def data(self, table: pa.Table) -> Any:
        """Return rows as the engine takes them."""
        return table

    def write(
        self,
        base: Path,
        data: pa.Table,
        operation: str = "upsert",
        options: Mapping[str, str] = QUICK,
        engine: Engine | None = None,
    ) -> WriteResult:
        return write_by(engine or self.engine(), base, self.data(data), operation, options)

    def check_files(self, base: Path) -> None:
        """Check that no file is left over."""
        assert (orphans(base), leftovers(base)) == ([], [])

    @pytest.mark.parametrize(("kind", "index"), CASES, ids=str)
    def test_every_operation_gives_the_rows_of_the_model(self, tmp_path: Path, kind: Kind, index: str) -> None:
        kind.create(tmp_path / "ours")
        kind.create(tmp_path / "want")
        options, model = {**QUICK, **INDEXES[index]}, Model()
        for operation, data in steps(7):
            want = write_by(LocalEngine(), tmp_path / "want", data, operation, options)
            ours = self.write(tmp_path / "ours", data, operation, options)
            change(model, operation, data, by_key_alone=index == "GLOBAL_SIMPLE", partitioned=kind.partitioned)
            assert seen(tmp_path / "ours") == sorted(model.values()), operation
            counts = [(each.rows_inserted, each.rows_updated, each.rows_deleted) for each in (ours, want)]
            assert counts[0] == counts[1], operation
            assert ours.groups_replaced or operation not in ("insert_overwrite", "insert_overwrite_table")
            self.check_files(tmp_path / "ours")

    @pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False)], ids=str)
    def test_updates_merges_and_deletes_by_filters(self, tmp_path: Path, kind: Kind) -> None:
        self.write(kind.create(tmp_path), rows(range(12), 5))
        session = HoodieTable.open(tmp_path)._open_session(dict(QUICK), None)
        modifier = Modifier(session, engine=self.engine())
        assert modifier.update({"name": "concat(name, '!')"}, "id < 'k004'").rows_updated == 4
        source = pa.concat_tables([rows([1], 0), rows([2, 5], 7, "merged"), rows([20, 21], 5)])
        matched = [Delete("source.ts = 0"), Update({"name": "source.name", "ts": "source.ts"})]
        left = Update({"name": "'left'"}, where="target.id > 'k009'")
        modifier.merge(source, MergeRequest("id", matched, Insert(where="source.id <> 'k021'"), left))
        modifier.delete("id = 'k008'")
        want = {row["id"]: row for row in rows([0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 20], 5).to_pylist()}
        want["k000"]["name"], want["k003"]["name"] = "n0!", "n3!"
        want["k010"]["name"] = want["k011"]["name"] = "left"
        for number in (2, 5):
            want[f"k{number:03}"] |= {"ts": 7, "name": f"merged{number}"}
        assert seen(tmp_path) == sorted(tuple(row.values()) for row in want.values())
        self.check_files(tmp_path)

    def test_an_update_that_fails_leaves_the_table_as_it_was(self, tmp_path: Path) -> None:
        self.write(Kind(9, True).create(tmp_path), rows(range(12), 5))
        before = list(HoodieTable.open(tmp_path).timeline)
        session = HoodieTable.open(tmp_path)._open_session(dict(QUICK), None)
        with pytest.raises(InvalidQueryError, match="by zero"):
            Modifier(session, engine=self.engine()).update({"ts": "cast(ts / (ts - 5) as bigint)"}, None)
        assert list(HoodieTable.open(tmp_path).timeline) == before

    @pytest.mark.parametrize("kind", [Kind(9, True), Kind(9, False), Kind(6, True)], ids=str)
    def test_tasks_that_run_twice_write_once(self, tmp_path: Path, kind: Kind) -> None:
        self.write(kind.create(tmp_path), rows(range(30), 1))
        result = self.write(tmp_path, rows(range(10, 40), 2), engine=self.twice())
        assert (result.rows_updated, result.rows_inserted) == (20, 10)
        assert seen(tmp_path) == sorted(tuple(row.values()) for row in [
            *rows(range(10), 1).to_pylist(), *rows(range(10, 40), 2).to_pylist()
        ])  # fmt: skip
        self.check_files(tmp_path)

    @pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False)], ids=str)
    def test_a_task_that_fails_leaves_the_table_as_it_was(self, tmp_path: Path, kind: Kind) -> None:
        self.write(kind.create(tmp_path), rows(range(30), 1))
        before = seen(tmp_path), list(HoodieTable.open(tmp_path).timeline)
        with pytest.raises(HoodieError, match="went away"):
            self.write(tmp_path, rows(range(10, 40), 2), engine=self.failing())
        assert (seen(tmp_path), list(HoodieTable.open(tmp_path).timeline)) == before
        self.check_files(tmp_path)

    def test_rows_that_do_not_fit_leave_the_table_as_it_was(self, tmp_path: Path) -> None:
        self.write(Kind(9, True).create(tmp_path), rows(range(10), 1))
        before = list(HoodieTable.open(tmp_path).timeline)
        with pytest.raises(InvalidQueryError, match="null or empty"):
            self.write(tmp_path, rows(range(3), 2).set_column(0, "id", pa.array(["a", None, "c"])))
        assert list(HoodieTable.open(tmp_path).timeline) == before

    def test_no_rows_write_nothing(self, tmp_path: Path) -> None:
        Kind(9, True).create(tmp_path)
        assert self.write(tmp_path, SCHEMA.empty_table()).instant is None
        self.write(tmp_path, rows(range(10), 1))
        assert self.write(tmp_path, SCHEMA.empty_table(), "insert_overwrite_table").groups_replaced == 3
        assert seen(tmp_path) == []

    def test_partitions_that_the_options_name(self, tmp_path: Path) -> None:
        self.write(Kind(9, False).create(tmp_path), rows(range(9), 1))
        only = {**QUICK, "hoodie.static.overwrite.partition.paths": "p1,p2"}
        with pytest.raises(InvalidQueryError, match="other partitions"):
            self.write(tmp_path, rows(range(3), 2), "insert_overwrite", only)
        assert self.write(tmp_path, rows([4], 2), "insert_overwrite", only).groups_replaced == 2
        assert [row[0] for row in seen(tmp_path)] == ["k000", "k003", "k004", "k006"]
        named = {**QUICK, "hoodie.datasource.write.partitions.to.delete": "p0"}
        assert self.write(tmp_path, rows([4], 2), "delete_partition", named).groups_replaced == 1
        assert [row[0] for row in seen(tmp_path)] == ["k004"]
        assert self.write(tmp_path, rows([1], 2), "delete_partition").groups_replaced == 1
        assert seen(tmp_path) == []

    def test_a_clustering_in_the_way_is_rolled_back_if_the_options_say_so(self, tmp_path: Path) -> None:
        self.write(Kind(9, False).create(tmp_path), rows(range(9), 1))
        table = HoodieTable.open(tmp_path)
        planned = table.schedule_clustering(options=QUICK)
        assert planned is not None
        with pytest.raises(ConflictError, match="pending clustering"):
            self.write(tmp_path, rows(range(3), 2))
        assert self.write(tmp_path, rows(range(12), 2), options=ALLOW).rows_updated == 9
        assert HoodieTable.open(tmp_path).timeline.find(planned) is None
        assert {row[2] for row in seen(tmp_path)} == {2}

    def test_it_runs_the_tasks_of_table_services(self, tmp_path: Path) -> None:
        engine: Any = self.engine()
        assert isinstance(engine, Runner)
        Kind(9, True).create(tmp_path)
        for ts in (1, 2):
            self.write(tmp_path, rows(range(9), ts))
        assert HoodieTable.open(tmp_path).compact(engine, options=QUICK).file_groups == 3
        assert {row[2] for row in seen(tmp_path)} == {2}
        self.check_files(tmp_path)


class TestLocalEngine(EngineTests):
    """Threads of this process."""

    def engine(self) -> Engine:
        return LocalEngine()

    def twice(self) -> Engine:
        return Twice()

    def failing(self) -> Engine:
        return Failing()

    def test_a_commit_beside_the_rollback_of_a_clustering_is_a_conflict(self, tmp_path: Path) -> None:
        self.write(Kind(9, False).create(tmp_path), rows(range(9), 1))
        assert HoodieTable.open(tmp_path).schedule_clustering(options=QUICK) is not None

        def insert() -> None:
            HoodieTable.open(tmp_path).bulk_insert(rows([50], 1), options=QUICK)

        with pytest.raises(ConflictError, match="while a clustering was rolled back"):
            self.write(tmp_path, rows(range(3), 2), options=ALLOW, engine=AfterKeys(insert))
        assert self.write(tmp_path, rows(range(3), 2)).rows_updated == 3
        assert len(seen(tmp_path)) == 10
