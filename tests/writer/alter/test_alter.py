"""Alterations of whole tables: rows, versions, conflicts, and random histories against a model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py import ConflictError, HoodieError, HoodieTable, InvalidQueryError, StorageError, UnsupportedFeatureError
from hoodie_py.errors import CommitStateUnknownError
from hoodie_py.files import TableFiles
from hoodie_py.table.schema.history import SCHEMA_FOLDER, load_schema_history
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.alter.alter import alter
from hoodie_py.writer.alter.changes import Changes
from hoodie_py.writer.pipeline.write import Write
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.timeline.session import WriteSession
from tests.watched_requests import failing_requests, writes
from tests.writer.compaction_tables import QUICK, copied
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan

_SCHEMA = pa.schema([
    ("id", pa.string()), ("ts", pa.int64()), ("a", pa.int32()), ("st", pa.struct([("x", pa.int32())])),
    ("part", pa.string()),
])  # fmt: skip
_GROWN = pa.struct([("y", pa.int32()), ("x", pa.int32())])
_OPTIONS = {**QUICK, "hoodie.parquet.small.file.limit": "0"}


def make(path: Path, version: int = 9, kind: str = "MERGE_ON_READ") -> HoodieTable:
    table = HoodieTable.create(
        path, _SCHEMA, record_key="id", ordering="ts", partition_by="part", table_type=kind, table_version=version
    )
    rows = [{"id": f"k{n}", "ts": 1, "a": n, "st": {"x": n}, "part": "p"} for n in range(3)]
    table.upsert(rows, options=_OPTIONS)
    table.upsert([{**rows[1], "ts": 2, "a": 11}], options=_OPTIONS)
    return table


def read(table: HoodieTable) -> dict[str, dict[str, Any]]:
    names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
    return {row["id"]: row for row in table.scan(columns=names).to_arrow().to_pylist()}


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize("version", [9, 6])
def test_rows_stay_and_go_on(tmp_path: Path, version: int, kind: str) -> None:
    table = make(tmp_path, version, kind)
    before, at = read(table), table.timeline.select_completed().instants[-1].request_time
    done = table.alter(
        rename={"a": "b", "st.x": "y"},
        cast={"a": "bigint"},
        add={"a": pa.string(), "st.z": pa.float64()},
        options=_OPTIONS,
    )
    assert table.schema.names[5:] == done.schema.names == ["id", "ts", "b", "st", "part", "a"]
    rows = {
        key: row | {"b": row["a"], "a": None, "st": {"y": row["st"]["x"], "z": None}} for key, row in before.items()
    }
    assert read(table) == rows
    assert {row["a"] for row in table.scan(as_of=at).to_arrow().to_pylist()} == {0, 11, 2}
    rows["k0"] |= {"ts": 5, "b": 2**40, "a": "new", "st": {"y": 1, "z": 0.5}}
    table.upsert(pa.Table.from_pylist([rows["k0"]], done.schema), options=_OPTIONS)
    assert read(table) == rows
    if kind == "MERGE_ON_READ":
        table.compact(options=_OPTIONS)
        assert read(table) == rows
    assert read(HoodieTable.open(tmp_path)) == rows


@pytest.mark.parametrize("kind", ["MERGE_ON_READ", "COPY_ON_WRITE"])
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("key", ["k1", "k9"])
def test_rows_that_bring_a_name_back_do_not_bring_old_values_back(
    tmp_path: Path, version: int, kind: str, key: str
) -> None:
    """The write reads old rows to rewrite their file, or, with a new key, to fill it up."""
    table = make(tmp_path, version, kind)
    table.insert([{"id": "k3", "ts": 1, "a": 3, "st": {"x": 3}, "part": "p"}], options=_OPTIONS)
    table.alter(drop="a", rename={"st.x": "y"}, options=_OPTIONS)
    new = {"id": key, "ts": 5, "st": {"y": 9, "x": 8}, "part": "p", "a": 7}
    schema = pa.schema([*(_SCHEMA.field(name) for name in ("id", "ts", "part")), ("a", pa.int32()), ("st", _GROWN)])
    table.upsert(pa.Table.from_pylist([new], schema=schema), options=QUICK)
    old = {f"k{n}": {"id": f"k{n}", "ts": 1, "st": {"y": n, "x": None}, "part": "p", "a": None} for n in (0, 1, 2, 3)}
    old["k1"]["ts"] = 2
    rows = {**old, key: new}
    assert read(table) == rows
    if kind == "MERGE_ON_READ":
        table.compact(options=QUICK)
        assert read(table) == rows


def test_the_first_alteration_gives_ids(tmp_path: Path) -> None:
    table = make(tmp_path)
    instant = str(table.alter(add={"n": "int"}, options=_OPTIONS).instant)
    first, second = load_schema_history(open_snapshot(str(tmp_path)).timeline)
    assert (first.version, second.version) == (0, int(instant))
    assert [field.id for field in first.record.columns] == list(range(10))
    assert (second.record.by_name["n"].id, second.max_id) == (11, 11)
    assert second.record.columns[:10] == first.record.columns


@pytest.mark.parametrize(
    "changes",
    [{"drop": ["id"]}, {"rename": {"ts": "t"}}, {"drop": "part"}, {"cast": {"ts": "string"}, "allow_loss": True}],
)
def test_columns_that_the_table_needs_stay(tmp_path: Path, changes: dict[str, Any]) -> None:
    table = make(tmp_path)
    with pytest.raises(InvalidQueryError, match=r"made of|ordered by"):
        table.alter(**changes, options=_OPTIONS)
    assert not (tmp_path / SCHEMA_FOLDER).exists()


def test_types_without_ids_are_refused(tmp_path: Path) -> None:
    schema = _SCHEMA.append(pa.field("v", pa.list_(pa.float32(), 2)))
    table = HoodieTable.create(tmp_path, schema, record_key="id")
    with pytest.raises(UnsupportedFeatureError, match="ids"):
        table.alter(add={"n": "int"}, options=_OPTIONS)


def test_a_dry_run_and_no_change_write_nothing(tmp_path: Path) -> None:
    table = make(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    assert table.alter(drop="a", dry_run=True).schema.names == ["id", "ts", "st", "part"]
    assert table.alter(nullable=["a"]).changes == ()
    assert sorted(tmp_path.rglob("*")) == files


def test_a_write_that_began_before_is_a_conflict(tmp_path: Path) -> None:
    table, other = make(tmp_path), HoodieTable.open(tmp_path)
    completed = writes(rf"^{tmp_path}/\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$")
    with failing_requests(completed, StorageError("no more room", operation="write")), pytest.raises(StorageError):
        table.alter(rename={"a": "b"}, options=_OPTIONS)
    assert list((tmp_path / SCHEMA_FOLDER).iterdir()) == []
    first, second = HoodieTable.open(tmp_path), HoodieTable.open(tmp_path)
    write = Write(first._open_session(_OPTIONS, None), open_snapshot(str(tmp_path)), WriteOperation.UPSERT)
    second.alter(rename={"a": "b"}, options=_OPTIONS)
    with pytest.raises(ConflictError, match="altered"):
        write.run([{"id": "k9", "ts": 9, "a": 9, "st": None, "part": "p"}])
    with pytest.raises(InvalidQueryError, match="no column 'a'"):
        other.alter(rename={"a": "c"}, options=_OPTIONS)
    assert "k9" not in read(HoodieTable.open(tmp_path))


_STEPS = st.lists(st.sampled_from(["rename", "drop", "add", "cast", "upsert", "grow", "widen", "compact"]), max_size=7)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_STEPS, st.sampled_from([(9, "MERGE_ON_READ"), (6, "MERGE_ON_READ"), (8, "COPY_ON_WRITE")]))
def test_random_histories_equal_a_model(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], kind: tuple[int, str]
) -> None:
    table = make(tmp_path_factory.mktemp("t"), *kind)
    rows = read(table)
    name, type_ = "a", "int"
    for used, step in enumerate(steps):
        ts = used + 10
        if step == "rename":
            table.alter(rename={name: f"c{used}"}, options=_OPTIONS)
            rows = {key: {f"c{used}" if k == name else k: v for k, v in row.items()} for key, row in rows.items()}
            name = f"c{used}"
        elif step == "drop":  # and another column takes the name
            table.alter(drop=name, add={name: "int"}, options=_OPTIONS)
            rows, type_ = {key: row | {name: None} for key, row in rows.items()}, "int"
        elif step == "add":
            table.alter(add={f"n{used}": "double", "st.f" + str(used): "int"}, options=_OPTIONS)
            for row in rows.values():
                row[f"n{used}"] = None
                row["st"] = row["st"] | {f"f{used}": None}
        elif step == "cast" and type_ == "int":
            table.alter(cast={name: "bigint"}, options=_OPTIONS)
            type_ = "bigint"
        elif step in ("upsert", "grow", "widen"):
            row = rows["k1"] | {"ts": ts, name: ts}
            schema = pa.schema([field for field in table.schema if not field.name.startswith("_hoodie_")])
            if step == "grow":
                schema = schema.append(pa.field(f"g{used}", pa.int32()))
                rows = {key: each | {f"g{used}": None} for key, each in rows.items()}
                row[f"g{used}"] = ts
            elif step == "widen" and type_ == "int":
                schema = schema.set(schema.get_field_index(name), pa.field(name, pa.int64()))
                row[name], type_ = 2**40 + ts, "bigint"
            table.upsert(pa.Table.from_pylist([row], schema), options=_OPTIONS)
            rows["k1"] = row
        elif step == "compact" and kind[1] == "MERGE_ON_READ":
            table.compact(options=_OPTIONS)
        assert read(table) == rows, step


@pytest.mark.filterwarnings("ignore:The write is committed", "ignore:A heartbeat was not removed")
@pytest.mark.parametrize("fault", ["kill before", "kill after", "refuse", "lose answer"])
def test_an_alteration_that_is_cut_short_is_there_or_not(tmp_path: Path, fault: str) -> None:
    make(tmp_path / "start", 9 if fault < "l" else 6)
    trace = Plan(watched=WRITES)
    _alter(copied(tmp_path / "start", tmp_path / "traced"), trace)
    before, after = read(HoodieTable.open(tmp_path / "start")), read(HoodieTable.open(tmp_path / "traced"))
    for at in range(len(fault) % 2, len(trace.trace), 2):  # every other writing call
        base = copied(tmp_path / "start", tmp_path / "case")
        told = None
        with suppress(Killed):
            try:
                _alter(base, Plan(at=at, fault=fault, watched=WRITES))
            except HoodieError as error:
                told = error
        now = read(HoodieTable.open(base))
        assert now in (before, after), trace.trace[at]
        if told is not None and not isinstance(told, CommitStateUnknownError):
            assert now == before, trace.trace[at]
        table = HoodieTable.open(base)
        if now == before:
            table.alter(rename={"a": "b"}, options=_OPTIONS)
        row = after["k1"] | {"ts": 9, "b": 9}
        data = pa.schema([field for field in table.schema if not field.name.startswith("_hoodie_")])
        table.upsert(pa.Table.from_pylist([row], data), options=_OPTIONS)
        assert read(table) == after | {"k1": row}, trace.trace[at]


def _alter(base: Path, plan: Plan) -> None:
    files = FaultyFiles(TableFiles.open(base), plan)
    session = WriteSession.open(open_snapshot(files), options=_OPTIONS)
    alter(session, Changes(rename={"a": "b"}))
