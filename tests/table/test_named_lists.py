"""Lists of names in a table's metadata cost no request a name: thousands of files and folders that are not there."""

from __future__ import annotations

import datetime as dt
import json
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieError, HoodieTable, HoodieWarning
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import ROLLBACK
from hoodie_py.formats.timeline.plans import (
    CleanPlan,
    CompactionOperation,
    CompactionPlan,
    RollbackPlan,
    RollbackRequest,
    RolledBackInstant,
)
from hoodie_py.formats.timeline.savepoints import SavepointMetadata, write_savepoint_metadata
from hoodie_py.formats.timeline.writers import (
    write_clean_plan,
    write_commit_metadata,
    write_compaction_plan,
    write_rollback_plan,
)
from tests.table.incremental.test_query import FALLBACK, make, row
from tests.watched_requests import counting_requests

MANY = 5_000
MOST = 800  # requests
OFF = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false", "hoodie.archive.automatic": "false",
       "hoodie.time.generator.max_expected_clock_skew_ms": "0"}  # fmt: skip
METRICS = {"TOTAL_LOG_FILES_SIZE": 1.0}
PLACES = ["files", "partitions"]


def write(place: Path) -> HoodieTable:
    table = make(place, properties={"hoodie.table.cdc.enabled": "true"})
    for price in (1, 2):
        table.upsert([row("a", price, price), row("b", price, price, "q")], options=OFF)
    return table


def name_files(what: str, instant: str) -> dict[str, list[str]]:
    """Names of base files that are not there, by partition: all in one, or each in its own."""
    names = [f"a{number:07d}-0000-4000-8000-00000000000a-0_0-1-2_{instant}.parquet" for number in range(MANY)]
    return {"p": names} if what == "files" else {f"x/{number}": [name] for number, name in enumerate(names)}


def find_late(table: HoodieTable) -> str:
    """A time after all commits, and before those that come."""
    newest = max(each.completion_time or each.request_time for each in table.refresh().timeline)
    moment = dt.datetime.strptime(newest + "000", "%Y%m%d%H%M%S%f") + dt.timedelta(milliseconds=2)
    time.sleep(0.01)
    return f"{moment:%Y%m%d%H%M%S%f}"[:17]


def locate(table: HoodieTable) -> Path:
    return Path(table.uri.removeprefix("file://")) / table.config.find_timeline_folder()


def add_commit(
    table: HoodieTable, metadata: CommitMetadata, action: str = "deltacommit", *, replace: bool = False
) -> None:
    folder, late = locate(table), find_late(table)
    for name in (f"{late}.{action}.requested", f"{late}.{action}.inflight"):
        (folder / name).write_bytes(b"")
    (folder / f"{late}_{late}.{action}").write_bytes(write_commit_metadata(metadata, 2, replace=replace))


def forge_stats(what: str, late: str) -> CommitMetadata:
    return CommitMetadata(
        operation_type="UPSERT",
        write_stats={
            partition: [
                WriteStat(
                    name[:38], f"{partition}/{name}", num_inserts=1, file_size_in_bytes=9, partition_path=partition
                )
                for name in names
            ]
            for partition, names in name_files(what, late).items()
        },
    )


def use(work: Callable[[], Any]) -> int:
    """Return how many requests something makes, whether it ends in an error of this package or not."""
    with warnings.catch_warnings(), counting_requests() as requests:
        warnings.simplefilter("ignore", HoodieWarning)
        with suppress(HoodieError):
            work()
    return requests.count


def forge_manifest(table: HoodieTable, names: list[str]) -> None:
    history = locate(table) / "history"
    history.mkdir(exist_ok=True)
    files = [{"fileName": each, "fileLen": 9} for each in names]
    (history / "manifest_1").write_text(json.dumps({"files": files}))
    (history / "_version_").write_text("1")


@pytest.mark.parametrize("repeated", [False, True])
def test_history_files_of_a_manifest(tmp_path: Path, repeated: bool) -> None:
    table = write(tmp_path / "t")
    name = "20200101000000000_20200101000000000_{}.parquet"
    forge_manifest(table, [name.format(0 if repeated else number) for number in range(MANY)])
    opened = HoodieTable.open(table.uri)
    assert use(lambda: opened.incremental("000").count()) < MOST
    assert use(lambda: HoodieTable.open(table.uri).scan(as_of="20200101000000000").count()) < MOST
    assert use(lambda: opened.archive(options=OFF)) < MOST


@pytest.mark.parametrize("what", PLACES)
def test_files_of_a_commit(tmp_path: Path, what: str) -> None:
    table = write(tmp_path / "t")
    add_commit(table, forge_stats(what, find_late(table)))
    late = find_late(table)
    plan = CleanPlan("3", "KEEP_lateST_COMMITS", earliest_action="deltacommit")
    (locate(table) / f"{late}.clean.requested").write_bytes(write_clean_plan(plan, table.uri))
    (locate(table) / f"{late}.clean.inflight").write_bytes(b"")  # so that no file is certain
    table = HoodieTable.open(table.uri)
    for fallback in ("true", "false"):
        assert use(lambda: table.incremental("000", options={FALLBACK: fallback}).count()) < MOST  # noqa: B023
    assert use(lambda: table.changes("000").to_arrow()) < MOST
    assert use(lambda: table.scan(integrity="strict").count()) < MOST
    assert use(lambda: table.upsert([row("a", 9, 9)], options=OFF)) < MOST
    assert use(lambda: table.clean(retain_commits=1, options=OFF)) < MOST


@pytest.mark.parametrize("what", PLACES)
def test_groups_that_a_commit_replaced(tmp_path: Path, what: str) -> None:
    table = write(tmp_path / "t")
    replaced = {path: [each[:38] for each in names] for path, names in name_files(what, "1").items()}
    metadata = CommitMetadata(operation_type="INSERT_OVERWRITE", replaced_file_ids=replaced)
    add_commit(table, metadata, "replacecommit", replace=True)
    for work in (
        lambda opened: opened.scan().count(),
        lambda opened: opened.changes("000").to_arrow(),
        lambda opened: opened.clean(retain_commits=1, options=OFF),
    ):
        assert use(lambda: work(HoodieTable.open(table.uri))) < MOST  # noqa: B023


@pytest.mark.parametrize("what", PLACES)
def test_files_of_a_clean_plan(tmp_path: Path, what: str) -> None:
    table = write(tmp_path / "t")
    files = {path: tuple(each) for path, each in name_files(what, "1").items()}
    plan = CleanPlan("3", "KEEP_lateST_COMMITS", files, earliest_action="deltacommit")
    (locate(table) / f"{find_late(table)}.clean.requested").write_bytes(write_clean_plan(plan, table.uri))
    assert use(lambda: HoodieTable.open(table.uri).clean(options=OFF)) < MOST


@pytest.mark.parametrize("what", PLACES)
def test_files_of_a_rollback_plan(tmp_path: Path, what: str) -> None:
    table = write(tmp_path / "t")
    folder, late = locate(table), find_late(table)
    for state in ("requested", "inflight"):
        (folder / f"{late}.deltacommit.{state}").write_bytes(b"")
    requests = tuple(RollbackRequest(path, tuple(each)) for path, each in name_files(what, late).items())
    plan = RollbackPlan(instant=RolledBackInstant(late, "deltacommit"), requests=requests)
    (folder / f"{find_late(table)}.{ROLLBACK}.requested").write_bytes(write_rollback_plan(plan, table.uri))
    assert use(lambda: HoodieTable.open(table.uri).rollback(late, dry_run=True)) < MOST
    assert use(lambda: HoodieTable.open(table.uri).rollback(late)) < MOST


@pytest.mark.parametrize("what", PLACES)
def test_files_of_a_savepoint(tmp_path: Path, what: str) -> None:
    table = write(tmp_path / "t")
    instant = table.savepoint(options=OFF).instant
    [path] = locate(table).glob("*.savepoint")
    files = {folder: tuple(each) for folder, each in name_files(what, instant).items()}
    path.write_bytes(write_savepoint_metadata(SavepointMetadata("", 1, "", files)))
    table.upsert([row("a", 9, 9)], options=OFF)
    assert use(lambda: HoodieTable.open(table.uri).restore(instant)) < MOST
    assert use(lambda: HoodieTable.open(table.uri).clean(retain_commits=1, options=OFF)) < MOST


@pytest.mark.parametrize("what", PLACES)
def test_operations_of_a_compaction_plan(tmp_path: Path, what: str) -> None:
    table = write(tmp_path / "t")
    operations = tuple(
        CompactionOperation("1", name[:38], path, name, (f".{name[:38]}_2.log.1_0-1-2",), METRICS)
        for path, names in name_files(what, "1").items()
        for name in names
    )
    late = find_late(table)
    (locate(table) / f"{late}.compaction.requested").write_bytes(write_compaction_plan(CompactionPlan(operations)))
    for work in (
        lambda opened: opened.scan().count(),
        lambda opened: opened.upsert([row("a", 9, 9)], options=OFF),
        lambda opened: opened.run_compaction(options=OFF),
        lambda opened: opened.rollback(late),
    ):
        assert use(lambda: work(HoodieTable.open(table.uri))) < MOST  # noqa: B023


def test_partitions_of_the_metadata_table(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    on: Mapping[str, str] = {**OFF, "hoodie.metadata.enable": "true"}
    table.upsert([row("a", 1, 1)], options=on)
    table.index.build("record_index", options=on)
    table.index.build("x", "price", options=on)
    path = tmp_path / "t/.hoodie/hoodie.properties"
    names = [f"secondary_index_x{number}" for number in range(MANY)]
    lines = [each for each in path.read_text().splitlines() if "checksum" not in each]
    path.write_text(
        "\n".join(f"{each},{','.join(names)}" if "metadata.partitions=" in each else each for each in lines)
    )
    path = tmp_path / "t/.hoodie/.index_defs/index.json"
    defined = json.loads(path.read_text())
    [found] = [each for each in defined["indexDefinitions"].values() if each["indexName"] == "secondary_index_x"]
    defined["indexDefinitions"] |= {name: {**found, "indexName": name} for name in names}
    path.write_text(json.dumps(defined))
    for work in (
        lambda opened: str(opened.index),
        lambda opened: opened.scan(filter="price = 1").count(),
        lambda opened: opened.verify(),
        lambda opened: opened.upsert([row("a", 9, 9)], options=on),
    ):
        assert use(lambda: work(HoodieTable.open(table.uri))) < MOST  # noqa: B023
