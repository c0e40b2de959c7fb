"""Keys beside real Java Hudi: buckets that a table shows, keys spelt as Java's row writer spells them, repeated keys.

After each kind of write of ours Java reads, upserts and compacts.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, InvalidQueryError
from integration.java_hudi.session import JavaSession

SIMPLE, COMPLEX = (f"org.apache.hudi.keygen.{name}KeyGenerator" for name in ("Simple", "Complex"))
TEXTS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
SCHEMA = pa.schema(
    [("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("part", pa.string()), ("ts", pa.int64()),
     ("name", pa.string())]
)  # fmt: skip
VERSIONS = pytest.mark.parametrize("version", [9, 8, 6])
TYPES = pytest.mark.parametrize("merge_on_read", [True, False], ids=["mor", "cow"])

Model = dict[tuple[str, str], str]


def _options(version: int, *, merge_on_read: bool, keys: str = "id", **more: str) -> dict[str, str]:
    return {
        **_services(version),
        "hoodie.table.name": "keys",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
        "hoodie.datasource.write.recordkey.field": keys,
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.keygenerator.class": COMPLEX if "," in keys else SIMPLE,
        "hoodie.table.ordering.fields": "ts",
        "hoodie.compact.inline": "false",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.insert.shuffle.parallelism": "1",
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def _services(version: int) -> dict[str, str]:
    return {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}


def _table(rows: Sequence[tuple[str, str, int, str]], at: dt.datetime | None = None) -> pa.Table:
    made = [{"id": id_, "at": at, "part": part, "ts": ts, "name": name} for id_, part, ts, name in rows]
    return pa.Table.from_pylist(made, SCHEMA)


def _note(model: Model, rows: Sequence[tuple[str, str, int, str]]) -> None:
    model.update({(part, id_): name for id_, part, _, name in rows})


def _check(java: JavaSession, path: Path, model: Model) -> None:
    """Java and we see each key of the model once."""
    for found in (java.read(path), HoodieTable.open(path).scan().to_arrow()):
        rows = found.to_pylist()
        assert Counter((row["part"], row["id"]) for row in rows) == Counter(list(model))
        assert {(row["part"], row["id"]): row["name"] for row in rows} == model


def _ours(path: Path, model: Model, ts: int, options: Mapping[str, str]) -> None:
    """Update every third key, bring new ones to old and new partitions, delete every seventh; without an index type."""
    table = HoodieTable.open(path)
    known = [(id_, part, ts, f"o{ts}") for part, id_ in sorted(model)[::3]]
    new = [(f"o{ts}-{n}", part, ts, f"n{ts}") for n in range(12) for part in ("p1", "p2", f"ours{ts}")]
    table.upsert(_table([*known, *new]), options)
    _note(model, [*known, *new])
    gone = sorted(model)[1::7]
    table.delete(_table([(id_, part, ts, "gone") for part, id_ in gone]), options)
    for each in gone:
        del model[each]


def _javas(java: JavaSession, path: Path, model: Model, ts: int, options: Mapping[str, str]) -> None:
    known = [(id_, part, ts, f"j{ts}") for part, id_ in sorted(model)[::2]]
    new = [(f"j{ts}-{n}", part, ts, f"m{ts}") for n in range(8) for part in ("p1", "p2", f"javas{ts}")]
    java.write(path, _table([*known, *new]), options)
    _note(model, [*known, *new])


@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING", "rules"])
@TYPES
@VERSIONS
def test_plain_writes_into_buckets(
    java: JavaSession, tmp_path: Path, version: int, merge_on_read: bool, engine: str
) -> None:
    if engine == "CONSISTENT_HASHING" and not merge_on_read:
        pytest.skip("Java has no consistent hashing of COPY_ON_WRITE tables")
    options = _options(
        version, merge_on_read=merge_on_read, hoodie__index__type="BUCKET",
        hoodie__bucket__index__num__buckets="7", hoodie__index__bucket__engine=engine.replace("rules", "SIMPLE"),
    )  # fmt: skip
    told = {}
    if engine == "rules":  # Java stores nothing about these, so they have to be told
        options["hoodie.bucket.index.partition.expressions"] = "p1$,5;^ours,2"
        told = {key: value for key, value in options.items() if key.startswith("hoodie.bucket.index.")}
    path, model = tmp_path / "table", Model()
    first = [(f"k{n}", f"p{1 + n % 2}", 1, "first") for n in range(80)]
    java.write(path, _table(first), options, mode="overwrite")
    _note(model, first)
    for ts in (2, 4):
        _ours(path, model, ts, told)
        _check(java, path, model)
        _javas(java, path, model, ts + 1, options)
        _check(java, path, model)
        if merge_on_read and ts == 2:
            java.run_compaction(path, _services(version))
            _check(java, path, model)
        elif merge_on_read:
            HoodieTable.open(path).compact()
            _javas(java, path, model, 6, options)
            _check(java, path, model)


@TYPES
@VERSIONS
def test_keys_of_timestamps(java: JavaSession, tmp_path: Path, version: int, merge_on_read: bool) -> None:
    path = tmp_path / "table"
    options = _options(version, merge_on_read=merge_on_read, keys="id,at")
    times = [
        dt.datetime(2020, 1, 2, 3, 4, 5, 678901, dt.UTC), dt.datetime(2020, 1, 2, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), dt.datetime(1900, 1, 2, 3, 4, 5, 500000, dt.UTC), None,
    ]  # fmt: skip

    def rows(ts: int, name: str, numbers: Sequence[int]) -> pa.Table:
        return pa.concat_tables([_table([(f"k{n}", f"p{n % 2}", ts, name)], times[n]) for n in numbers])

    def names() -> dict[str, str]:
        found = java.read(path).to_pylist()
        assert len({row["_hoodie_record_key"] for row in found}) == len(found)
        ours = HoodieTable.open(path).scan().to_arrow().to_pylist()
        assert {row["id"]: row["name"] for row in ours} == {row["id"]: row["name"] for row in found}
        assert len(ours) == len(found)
        return {row["id"]: row["name"] for row in found}

    java.write(path, rows(1, "first", range(5)), options, operation="bulk_insert", mode="overwrite")
    table = HoodieTable.open(path)
    for operation in ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite"):
        with pytest.raises(InvalidQueryError, match="spells record keys otherwise"):
            getattr(table, operation)(rows(2, "doubled", [0, 1]))
    table.upsert(rows(2, "ours", range(4)), {TEXTS: "true"})
    table.delete(rows(3, "gone", [1]), {TEXTS: "true"})
    assert names() == {"k0": "ours", "k2": "ours", "k3": "ours", "k4": "first"}
    java.write(path, rows(4, "javas", [0, 2, 4]), {**options, TEXTS: "true"})
    assert names() == {"k0": "javas", "k2": "javas", "k3": "ours", "k4": "javas"}
    if merge_on_read:
        java.run_compaction(path, _services(version))
    HoodieTable.open(path).upsert(rows(5, "again", [3, 4]), {TEXTS: "true"})
    assert names() == {"k0": "javas", "k2": "javas", "k3": "again", "k4": "again"}


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
@TYPES
@VERSIONS
def test_keys_that_are_there_several_times(
    java: JavaSession, tmp_path: Path, version: int, merge_on_read: bool, index: str
) -> None:
    """What Java does to a table that we wrote, and we to a table that Java wrote: the same to both."""
    options = _options(version, merge_on_read=merge_on_read, hoodie__index__type=index)
    ours = {"hoodie.index.type": index, "hoodie.parquet.small.file.limit": "0"}
    found: dict[str, list[list[Any]]] = {"java": [], "ours": []}
    for who, states in found.items():
        path = tmp_path / who
        first = _table([("a", "p", 1, "a1"), ("b", "p", 1, "b1")])
        java.write(path, first, options, operation="insert", mode="overwrite")
        for rows in ([("a", "p", 2, "a2")], [("c", "p", 1, "c1"), ("c", "p", 2, "c2")]):
            if who == "java":
                HoodieTable.open(path).insert(_table(rows), ours)
            else:
                java.write(path, _table(rows), options, operation="insert")
        for rows in ([("a", "p", 9, "a9")], [("a", "p", 5, "a5")], [("c", "p", 9, "c9")]):
            if who == "java":
                java.write(path, _table(rows), options)
            else:
                HoodieTable.open(path).upsert(_table(rows), ours)
            states.append(_seen(java, path))
        if who == "java":
            java.write(path, _table([("a", "p", 9, "x")]), options, operation="delete")
        else:
            HoodieTable.open(path).delete(_table([("a", "p", 9, "x")]), ours)
        states.append(_seen(java, path))
        if merge_on_read:
            java.run_compaction(path, _services(version))
            states.append(_seen(java, path))
    assert found["ours"] == found["java"]
    assert found["java"][0].count(("a", "a9")) == 2


def _seen(java: JavaSession, path: Path) -> list[Any]:
    seen = sorted((row["id"], row["name"]) for row in java.read(path).to_pylist())
    assert seen == sorted((row["id"], row["name"]) for row in HoodieTable.open(path).scan().to_arrow().to_pylist())
    return seen


@TYPES
@VERSIONS
def test_a_bulk_insert_of_rows_marked_deleted(
    java: JavaSession, tmp_path: Path, version: int, merge_on_read: bool
) -> None:
    path = tmp_path / "table"
    options = _options(version, merge_on_read=merge_on_read)
    flag = pa.field("_hoodie_is_deleted", pa.bool_())
    java.write(path, _table([("a", "p", 1, "a1")]).append_column(flag, pa.array([False])), options, mode="overwrite")
    rows = _table([(id_, "p", 1, "bulk") for id_ in "bcd"]).append_column(flag, pa.array([True, False, None]))
    HoodieTable.open(path).bulk_insert(rows)
    assert [id_ for id_, _ in _seen(java, path)] == ["a", "b", "c", "d"]
    java.write(path, _table([("c", "p", 2, "c2")]).append_column(flag, pa.array([False])), options)
    if merge_on_read:
        java.run_compaction(path, _services(version))
    assert [id_ for id_, _ in _seen(java, path)] == ["a", "b", "c", "d"]
