"""Mergers that people want give the fold of a plain model in every layout, by every index, after every service."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie_py.spark as spark_functions
from hoodie_py import HoodieTable, RecordMerger, UnsupportedFeatureError
from integration.mergers.catalogue import RANKS, RULES, SCHEMA, Row, StaysDead
from integration.mergers.model import Layout, Model

INDEXES = ("SIMPLE", "BLOOM", "BUCKET", "RECORD_INDEX", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
LAYOUTS = [Layout(mor, version, index) for mor in (True, False) for version in (9, 8, 6) for index in INDEXES]
PAIRS = [(merger, layout) for layout in LAYOUTS for merger in RULES]
# Each merger once, and each kind of table and index; `make thorough` has the rest.
QUICK = {(merger, LAYOUTS[(number * 5 + 1) % len(LAYOUTS)]) for number, merger in enumerate(RULES)}
KEYS = [f"k{number}" for number in range(6)]


def _list_pairs() -> Iterator[Any]:
    for merger, layout in PAIRS:
        marks = () if (merger, layout) in QUICK else (pytest.mark.thorough,)
        yield pytest.param(merger, layout, marks=marks, id=f"{merger.__name__}-{layout}")


def choose_partition(key: str) -> str:
    """Return the partition of a key."""
    return f"p{int(key[1:]) % 2}"


class _Rows:
    """Rows at random, the same ones for the same name."""

    def __init__(self, name: str) -> None:
        self._random = random.Random(name)
        self._time = 10

    def make(self, keys: list[str], *, dead: bool = False) -> list[Row]:
        self._time += 1
        return [self._make_row(key, dead) for key in keys]

    def choose(self, count: int) -> list[str]:
        return self._random.sample(KEYS, count)

    def _make_row(self, key: str, dead: bool) -> Row:
        draw = self._random
        return {
            "id": key,
            "part": choose_partition(key),
            "ts": self._time + draw.randint(-7, 3),
            "seq": draw.randint(0, 9),
            "a": draw.choice([None, draw.randint(0, 9)]),
            "a_at": draw.randint(0, 99),
            "b": draw.choice([None, f"b{draw.randint(0, 9)}"]),
            "b_at": draw.randint(0, 99),
            "n": draw.choice([None, draw.randint(0, 9)]),
            "tags": draw.choice([None, [], [f"t{draw.randint(0, 9)}"]]),
            "place": draw.choice([None, {"city": draw.choice([None, "sf"]), "zip": draw.choice([None, 94110])}]),
            "source": draw.choice([None, *RANKS]),
            "_hoodie_is_deleted": dead,
        }


class Run:
    """One table beside its model."""

    def __init__(self, place: Path, merger: type[RecordMerger], layout: Layout, engine: Any = None) -> None:
        self.merger = merger
        self.layout = layout
        self.engine = engine
        self.own = merger if engine is None else None  # a session has it
        self.model = Model(RULES[merger], layout)
        self.rows = _Rows(f"{merger.__name__}-{layout}")
        self.options = {"hoodie.index.type": layout.index}
        if layout.index == "BUCKET":
            self.options["hoodie.bucket.index.num.buckets"] = "1"
        if layout.index == "RECORD_INDEX":
            self.options |= {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
        self.table = HoodieTable.create(
            place,
            SCHEMA,
            record_key="id",
            ordering="ts",
            partition_by="part",
            table_type="MERGE_ON_READ" if layout.merge_on_read else "COPY_ON_WRITE",
            table_version=layout.version,
            merger=merger,
        )

    def upsert(self, rows: list[Row]) -> None:
        before = self._list_groups()
        done = self.table.upsert(pa.Table.from_pylist(rows, SCHEMA), self.options, merger=self.merger)
        self.model.upsert(rows, self._read_rewritten(before, done.instant))
        self.check("upsert")

    def _list_groups(self) -> set[str]:
        return {each.file_id for each in self.table.file_slices()}

    def _read_rewritten(self, before: set[str], instant: str | None) -> set[str]:
        """Return the keys in base files that a write made anew for groups that were there."""
        keys: set[str] = set()
        for each in self.table.file_slices():
            if each.base_file is not None and each.base_file.instant == instant and each.file_id in before:
                content = pa.BufferReader(self.table.files.read(each.base_file.path))
                keys |= set(pq.read_table(content, columns=["id"])["id"].to_pylist())
        return keys

    def delete(self, keys: list[str]) -> None:
        partitions = {key: choose_partition(key) for key in keys}
        data = pa.table({"id": list(partitions), "part": list(partitions.values())})
        self.table.delete(data, self.options, merger=self.merger)
        self.model.delete(partitions)
        self.check("delete")

    def update(self, key: str) -> None:
        self.table.update({"b": "'u'", "ts": "ts + 1"}, f"id = '{key}'", self.options, merger=self.merger)
        self._apply_update(key)

    def _apply_update(self, key: str) -> None:
        found = self.model.rows().get(key)
        if found is not None:
            self.model.upsert([{**found, "b": "u", "ts": found["ts"] + 1}])
        self.check("update")

    def merge(self, rows: list[Row]) -> None:
        source, before = pa.Table.from_pylist(rows, SCHEMA), self._list_groups()
        done = self.table.merge(
            source,
            "id",
            when_matched="update",
            when_not_matched="insert",
            options=self.options,
            merger=self.merger,
        )
        self.model.upsert(rows, self._read_rewritten(before, done.instant))
        self.check("merge")

    def compact(self) -> None:
        if self.layout.merge_on_read:
            self.table.compact(self.engine, merger=self.own)
            self.model.compact()
            self.check("compact")

    def compact_logs(self) -> None:
        if not self.layout.merge_on_read:
            return
        few = {"hoodie.log.compaction.blocks.threshold": "2"}
        try:
            self.table.log_compact(self.engine, few, merger=self.own)
        except UnsupportedFeatureError as error:
            assert "in which a merger made" in str(error)  # noqa: PT017 - only some rules make what no block can say
        else:
            self.model.compact_logs()
        self.check("log compaction")

    def cluster(self) -> None:
        if self.layout.index != "BUCKET":
            self.table.cluster(self.engine, merger=self.own)
            self.model.compact()
            self.check("cluster")

    def check(self, step: str, **how: Any) -> None:
        found = self.table.scan(SCHEMA.names, merger=self.merger, **how).to_arrow().sort_by("id").to_pylist()
        assert found == self._list_wanted(), f"after {step}"

    def _list_wanted(self) -> list[Row]:
        return sorted(self.model.rows().values(), key=lambda row: row["id"])

    def take_all_steps(self) -> None:
        rows = self.rows
        self.upsert(rows.make([*KEYS[:5], *rows.choose(2)]))
        self.upsert(rows.make(rows.choose(4)))
        gone = rows.choose(2)
        self.delete(gone)
        self.upsert(rows.make([*gone, *rows.choose(1)]))
        self.compact_logs()
        self.upsert(rows.make(rows.choose(2), dead=True))
        self.upsert(rows.make(KEYS))
        self.update(rows.choose(1)[0])
        self.check("update", batch_rows=1)
        self.compact()
        self.upsert(rows.make(rows.choose(3)))
        self.merge(rows.make(rows.choose(3)))
        self.compact_logs()
        self.cluster()
        self.delete(rows.choose(1))
        self.upsert(rows.make(rows.choose(3)))
        self.check("all", batch_rows=1)
        self.check("all", memory_limit=1)
        report = self.table.verify(merger=self.merger)
        assert report.is_right, str(report)


@pytest.mark.parametrize(("merger", "layout"), [*_list_pairs()])
def test_a_table_holds_the_fold_of_the_model(tmp_path: Path, merger: type[RecordMerger], layout: Layout) -> None:
    Run(tmp_path / "table", merger, layout).take_all_steps()


class SparkRun(Run):
    """The same on the workers of a Spark session, which has the merger."""

    def upsert(self, rows: list[Row]) -> None:
        before = self._list_groups()
        # Spark shuffles the rows of a batch, so each key comes once.
        rows = list({row["id"]: row for row in rows}.values())
        frame = self.engine.createDataFrame(pa.Table.from_pylist(rows, SCHEMA))
        done = spark_functions.write(frame, self.table.uri, options=self.options)
        self.table = self.table.refresh()
        self.model.upsert(rows, self._read_rewritten(before, done.instant))
        self.check("upsert")

    def update(self, key: str) -> None:
        set_ = {"b": "'u'", "ts": "ts + 1"}
        spark_functions.update(self.engine, self.table.uri, set_, f"id = '{key}'", options=self.options)
        self.table = self.table.refresh()
        self._apply_update(key)

    def check(self, step: str, **how: Any) -> None:
        super().check(step, **how)
        rows = spark_functions.read(self.engine, self.table.uri, SCHEMA.names).toArrow().sort_by("id").to_pylist()
        assert rows == self._list_wanted(), f"on Spark after {step}"


@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("merger", "layout"),
    [
        pytest.param(merger, LAYOUTS[at % 18], id=f"{merger.__name__}-{LAYOUTS[at % 18]}")
        for at, merger in enumerate(RULES)
    ],
)
def test_a_table_on_spark_holds_the_fold_of_the_model(
    spark: Any, tmp_path: Path, merger: type[RecordMerger], layout: Layout
) -> None:
    spark_functions.register(spark, mergers=[merger], name="folding")
    try:
        SparkRun(tmp_path / "table", merger, layout, spark).take_all_steps()
    finally:
        spark_functions.register(spark, name="folding")


@pytest.mark.parametrize("index", INDEXES)
def test_the_merger_is_asked_about_a_deleted_record_while_the_index_finds_it(tmp_path: Path, index: str) -> None:
    run = Run(tmp_path / "table", StaysDead, Layout(merge_on_read=True, version=9, index=index))
    run.upsert(run.rows.make(["k0", "k2"]))
    run.delete(["k0"])
    run.upsert(run.rows.make(["k0"]))
    stays = index in ("SIMPLE", "BLOOM", "BUCKET")
    found = sorted(run.table.scan(["id"], merger=StaysDead).to_arrow()["id"].to_pylist())
    assert found == (["k2"] if stays else ["k0", "k2"])
