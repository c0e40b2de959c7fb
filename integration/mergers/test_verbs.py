"""Every verb that reads or merges records takes a merger, as an argument, as an option of its command, from Spark."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

import hoodie_py.spark
from hoodie_py import HoodieTable, MergeError, RecordMerger
from hoodie_py.cli.app import app

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
PARTS = ("a", "la", 1), ("b", "la", 10), ("c", "sf", 100)
INDEXED = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
FEW_BLOCKS = {"hoodie.log.compaction.blocks.threshold": "2"}
EAGER = {"hoodie.compact.inline.max.delta.commits": "1"}
NAME = "integration.mergers.test_verbs.Adds"


class Adds(RecordMerger):
    """Adds the numbers up; nobody registers it."""

    strategy_id = "0b1f4a52-7a4f-4b9a-9d0c-5a2b8a5a8f99"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        return context.replace(newer, n=context.get_value(older, "n") + context.get_value(newer, "n"))


WITHOUT = {
    "open": "reads no records",
    "refresh": "reads no records",
    "create": "takes a merger for its id alone",
    "file_slices": "reads no records",
    "read_info": "reads no records",
    "schedule_compaction": "plans by files",
    "schedule_clustering": "plans by files",
    "clean": "removes files",
    "archive": "moves instants",
    "savepoint": "names files",
    "savepoints": "names files",
    "delete_savepoint": "names files",
    "rollback": "removes what never counted",
    "alter": "changes the schema",
    "sync": "tells catalogs of partitions",
}

Table = HoodieTable
Fold = dict[str, int]
WHOLE: Fold = {"a": 3, "b": 10, "c": 300}


def _read(rows: pa.Table) -> Fold:
    return dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))


def _stored(table: HoodieTable, merger: Any) -> Fold:
    return _read(table.scan(["id", "n"], merger=merger).to_arrow())


def _write(verb: str, given: Any, **more: Any) -> Callable[[HoodieTable, Any], Fold]:
    def call(table: HoodieTable, merger: Any) -> Fold:
        getattr(table, verb)(given, merger=merger, **more)
        return _stored(table, Adds)

    return call


def _serve(verb: str, *given: Any, **more: Any) -> Callable[[HoodieTable, Any], Fold]:
    def call(table: HoodieTable, merger: Any) -> Fold:
        result = getattr(table, verb)(*given, merger=merger, **more)
        if verb == "services":
            failed = [step.text for step in result.steps if step.outcome != "done"]
            if failed:
                raise MergeError("; ".join(failed))
        return _stored(table, Adds)

    return call


def _run_planned(kind: str) -> Callable[[HoodieTable, Any], Fold]:
    def call(table: HoodieTable, merger: Any) -> Fold:
        instant = getattr(table, f"schedule_{kind}")()
        assert instant is not None
        getattr(table, f"run_{kind}")(instant, merger=merger)
        return _stored(table, Adds)

    return call


def _follow(table: HoodieTable, merger: Any) -> Fold:
    found: Fold = {}
    for batch in table.follow(poll=None, columns=["id", "n"], merger=merger):
        found |= _read(batch.rows)
    return found


def _changes(table: HoodieTable, merger: Any) -> Fold:
    found = table.changes(as_structs=True, merger=merger).to_arrow().sort_by("ts_ms").to_pylist()
    return {each["after"]["id"]: each["after"]["n"] for each in found}


def _build_index(table: HoodieTable, merger: Any) -> Fold:
    table.index.build("numbers", "n", merger=merger)
    report = table.verify(merger=Adds)
    assert report.is_right, str(report)
    return _stored(table, Adds)


def _restore(table: HoodieTable, merger: Any) -> Fold:
    instant = table.savepoint().instant
    table.upsert([{"id": "a", "city": "la", "n": 5}], merger=Adds)
    table.restore(instant, merger=merger)
    return _stored(table, Adds)


def _verify(table: HoodieTable, merger: Any) -> Fold:
    report = table.verify(merger=merger)
    if not report.is_right:
        raise MergeError(str(report))
    return _stored(table, Adds)


ONE = [{"id": "a", "city": "la", "n": 4}]
VERBS: dict[str, tuple[Callable[[HoodieTable, Any], Fold], Fold]] = {
    "scan": (lambda table, merger: _read(table.scan(["id", "n"], merger=merger).to_arrow()), WHOLE),
    "incremental": (
        lambda table, merger: _read(table.incremental(columns=["id", "n"], merger=merger).to_arrow()),
        WHOLE,
    ),
    "changes": (_changes, WHOLE),
    "follow": (_follow, WHOLE),
    "to_arrow": (lambda table, merger: _read(table.to_arrow(["id", "n"], merger=merger)), WHOLE),
    "to_pandas": (
        lambda table, merger: _read(pa.Table.from_pandas(table.to_pandas(["id", "n"], merger=merger))),
        WHOLE,
    ),
    "to_polars": (lambda table, merger: _read(table.to_polars(["id", "n"], merger=merger).to_arrow()), WHOLE),
    "scan_polars": (lambda table, merger: _read(table.scan_polars(merger=merger).collect().to_arrow()), WHOLE),
    "head": (lambda table, merger: _read(table.head(9, ["id", "n"], merger=merger)), WHOLE),
    "upsert": (_write("upsert", ONE), {**WHOLE, "a": 7}),
    "insert": (_write("insert", [{"id": "d", "city": "la", "n": 4}]), {**WHOLE, "d": 4}),
    "bulk_insert": (_write("bulk_insert", [{"id": "d", "city": "la", "n": 4}]), {**WHOLE, "d": 4}),
    "insert_overwrite": (_write("insert_overwrite", ONE), {"a": 4, "c": 300}),
    "insert_overwrite_table": (_write("insert_overwrite_table", ONE), {"a": 4}),
    "delete": (_write("delete", "n >= 300"), {"a": 3, "b": 10}),
    "delete_partition": (_write("delete_partition", "la"), {"c": 300}),
    # An update writes the new value, which a read adds to the old one.
    "update": (_write("update", {"n": "n + 1"}, where="n = 3"), {**WHOLE, "a": 7}),
    "merge": (_write("merge", ONE, on="id", when_matched="update"), {**WHOLE, "a": 7}),
    "run_compaction": (_run_planned("compaction"), WHOLE),
    "compact": (_serve("compact"), WHOLE),
    "log_compact": (_serve("log_compact", None, FEW_BLOCKS), WHOLE),
    "run_clustering": (_run_planned("clustering"), WHOLE),
    "cluster": (_serve("cluster"), WHOLE),
    "services": (_serve("services", True, None, EAGER), WHOLE),
    "upgrade": (_serve("upgrade"), WHOLE),
    "downgrade": (_serve("downgrade", 8), WHOLE),
    "restore": (_restore, WHOLE),
    "verify": (_verify, WHOLE),
    "index": (_build_index, WHOLE),
}
CAPTURED = {"changes"}  # of a table with change data, of which there are no log compactions
NEEDS_NONE = {"insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"}  # where no logs are in the way
OLD = {"upgrade": 8}


def _make(place: Path, verb: str) -> HoodieTable:
    captured = {"hoodie.table.cdc.enabled": "true"} if verb in CAPTURED else {}
    table = HoodieTable.create(
        place,
        SCHEMA,
        record_key="id",
        partition_by="city",
        merger=Adds,
        properties=captured,
        table_version=OLD.get(verb, 9),
    )
    rows = [dict(zip(SCHEMA.names, each, strict=True)) for each in PARTS]
    table.upsert(rows, INDEXED, merger=Adds)
    table.upsert([{**rows[0], "n": 1}, {**rows[2], "n": 100}], merger=Adds)
    table.upsert([{**rows[0], "n": 1}, {**rows[2], "n": 100}], merger=Adds)
    return table


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[tuple[int, bool], Path] = {}

    def get(verb: str) -> Path:
        kind = OLD.get(verb, 9), verb in CAPTURED
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp("template") / "table"
            _make(made[kind], verb)
        return made[kind]

    return get


@pytest.fixture
def open_copy(templates: Callable[[str], Path], tmp_path: Path) -> Callable[[str], HoodieTable]:
    def copy(verb: str) -> HoodieTable:
        place = tmp_path / "table"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(templates(verb), place)
        return HoodieTable.open(place)

    return copy


def _list_methods() -> dict[str, Any]:
    return {
        name: value
        for name, value in inspect.getmembers(HoodieTable)
        if not name.startswith("_") and (inspect.isfunction(value) or inspect.ismethod(value))
    }


def test_every_method_takes_a_merger_or_says_why_it_needs_none() -> None:
    methods = _list_methods()
    assert methods.keys() - {"index"} == (VERBS.keys() | WITHOUT.keys()) - {"index"}
    takes = {name for name, value in methods.items() if "merger" in inspect.signature(value).parameters}
    assert takes == (VERBS.keys() | {"create"}) - {"index"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_merges_by_the_merger_that_it_is_given(open_copy: Callable[[str], HoodieTable], verb: str) -> None:
    call, expected = VERBS[verb]
    assert call(open_copy(verb), Adds) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in NEEDS_NONE])
def test_a_verb_without_its_merger_is_an_error(open_copy: Callable[[str], HoodieTable], verb: str) -> None:
    with pytest.raises(MergeError, match="needs a merger"):
        VERBS[verb][0](open_copy(verb), None)


COMMANDS_WITHOUT = {
    "alter", "archive", "clean", "demo", "doctor", "log", "rollback", "savepoint", "show", "slices", "sync", "tables",
    "timeline",
}  # fmt: skip


def _list_commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def test_every_command_takes_a_merger_or_is_known_to_need_none() -> None:
    commands = _list_commands()
    takes = {name for name, each in commands.items() if any(param.name == "merger" for param in each.params)}
    assert commands.keys() - takes == COMMANDS_WITHOUT


COMMANDS = {
    "read": ["--columns", "id,n", "--json"],
    "changes": ["--json"],
    "log-compact": ["--blocks", "2"],
    "compact": [],
    "cluster": [],
    "verify": [],
    "downgrade": ["--to", "8"],
    "delete-partition": ["la"],
    "index": ["build", "numbers", "--column", "n"],
    "explain": ["a"],
    "history": ["a"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_merges_by_the_merger_that_it_is_given(open_copy: Callable[[str], HoodieTable], command: str) -> None:
    table = open_copy(command)
    head, *tail = COMMANDS[command] or [""]
    arguments = [command, table.uri, *filter(None, [head, *tail])]
    assert CliRunner().invoke(app, arguments).exit_code == 1
    done = CliRunner().invoke(app, [*arguments, "--merger", NAME])
    assert done.exit_code == 0, done.output
    left = {"c": 300} if command == "delete-partition" else WHOLE
    assert _stored(table.refresh(), Adds) == left


@pytest.mark.timeout(300)
def test_functions_and_services_on_spark_take_the_mergers_of_the_session(
    spark: Any, open_copy: Callable[[str], HoodieTable]
) -> None:
    from hoodie_py.spark import delete, merge_into, read, register, update, write

    register(spark, mergers=[Adds], name="adding")
    try:
        uri = open_copy("upsert").uri

        def find() -> Fold:
            return _read(read(spark, uri, ["id", "n"]).toArrow())

        one = spark.createDataFrame([("a", "la", 4)], "id string, city string, n long")
        assert find() == WHOLE
        write(one, uri)
        assert find() == {**WHOLE, "a": 7}
        update(spark, uri, {"n": "n + 1"}, where="n = 7")
        merge_into(one, uri, on="id", when_matched="update")
        assert find() == {**WHOLE, "a": 19}
        delete(spark, uri, where="n = 10")
        table = HoodieTable.open(uri)
        assert table.log_compact(spark, FEW_BLOCKS).file_groups == 2
        assert table.compact(spark).file_groups == 2
        assert table.cluster(spark).rows_written == 2
        table.upsert(ONE, merger=Adds)
        steps = table.services(True, spark, EAGER).steps
        assert [(each.service, each.outcome) for each in steps if each.service == "compaction"] == [
            ("compaction", "done")
        ]
        assert find() == {"a": 23, "c": 300}
        assert table.verify(merger=Adds).is_right
    finally:
        register(spark, name="adding")
    with pytest.raises(MergeError, match="needs a merger"):
        write(one, uri)


def test_every_function_of_spark_takes_a_merger() -> None:
    for name in hoodie_py.spark.__all__:
        parameters = inspect.signature(getattr(hoodie_py.spark, name)).parameters
        assert {"merger", "mergers"} & parameters.keys(), name
