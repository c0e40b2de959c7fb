"""Keys that come back as a compaction drops the delete that hid them: the indexes of keys get them, whoever is last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieTable
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.indexes.returning_keys import StalePlanError
from hoodie_py.writer.services.compaction import Compaction
from tests.reader.mergers import Sums
from tests.writer.compaction_tables import QUICK
from tests.writer.indexes.indexed_rows import make_secondary, read_index, read_places, read_secondary

BESIDE_OTHERS = {
    **QUICK,
    "hoodie.index.type": "SIMPLE",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
SCHEMA = pa.schema([("id", pa.string()), ("name", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])


def row(key: str, ts: int, name: str | None = "n", *, deleted: bool = False) -> dict[str, Any]:
    return {"id": key, "name": name, "ts": ts, "_hoodie_is_deleted": deleted}


def make_table(base: Path, version: int) -> HoodieTable:
    """A table in which the base file has the key "a", and a log file its delete."""
    table = HoodieTable.create(base, SCHEMA, record_key="id", ordering="ts", table_version=version)
    table.upsert([row("a", 1), row("b", 1)], BESIDE_OTHERS)
    table.index.build("record_index", options=QUICK)
    if version >= 9:
        table.index.build("secondary_index_by_name", "name", options=QUICK)
    table.upsert([row("a", 9, deleted=True)], BESIDE_OTHERS)
    return table


def check(base: Path, keys: list[str]) -> None:
    table = HoodieTable.open(base)
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == keys
    assert read_index(base) == read_places(base)
    assert table.verify(data=False).is_right
    if "secondary_index_by_name" in table.config.metadata_partitions:
        assert read_secondary(base) == make_secondary(base, "name")


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Run something after the next commit has looked at its files, and before it takes the lock."""

    def arrange(run: Callable[[], object]) -> None:
        prepare, waiting = MetadataTable.prepare, [run]

        def prepare_and_run(commit: MetadataCommit) -> MetadataCommit:
            found = prepare(commit)
            if waiting:
                waiting.pop()()
            return found

        monkeypatch.setattr(MetadataTable, "prepare", staticmethod(prepare_and_run))

    return arrange


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_compaction_brings_a_key_back_that_a_later_log_has(version: int, tmp_path: Path) -> None:
    table = make_table(tmp_path, version)
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    table.refresh().upsert([row("a", 5, "late"), row("c", 5)], BESIDE_OTHERS)
    check(tmp_path, ["b", "c"])
    table.refresh().run_compaction(plan, options=BESIDE_OTHERS)
    check(tmp_path, ["a", "b", "c"])


def test_a_log_that_lands_as_a_compaction_completes(between: Callable[..., None], tmp_path: Path) -> None:
    table = make_table(tmp_path, 9)
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    table.refresh().upsert([row("c", 5)], BESIDE_OTHERS)
    between(lambda: table.refresh().upsert([row("a", 5, "late")], BESIDE_OTHERS))
    table.refresh().run_compaction(plan, options=BESIDE_OTHERS)
    check(tmp_path, ["a", "b", "c"])


def test_a_compaction_that_completes_as_a_write_lands(between: Callable[..., None], tmp_path: Path) -> None:
    table = make_table(tmp_path, 9)
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    between(lambda: table.refresh().run_compaction(plan, options=BESIDE_OTHERS))
    HoodieTable.open(tmp_path).upsert([row("a", 5, "late"), row("c", 5), row("b", 7, deleted=True)], BESIDE_OTHERS)
    check(tmp_path, ["a", "c"])


def test_a_later_delete_stays_in_force(between: Callable[..., None], tmp_path: Path) -> None:
    table = make_table(tmp_path, 9)
    table.upsert([row("b", 8, "new"), row("c", 1)], BESIDE_OTHERS)
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    table.refresh().upsert([row("a", 9, deleted=True), row("b", 7, deleted=True)], BESIDE_OTHERS)
    between(lambda: table.refresh().upsert([row("b", 9, deleted=True)], BESIDE_OTHERS))
    table.refresh().run_compaction(plan, options=BESIDE_OTHERS)
    check(tmp_path, ["c"])


@pytest.mark.parametrize("partitioned", [False, True], ids=["global", "partitioned"])
def test_a_key_that_was_inserted_elsewhere_meanwhile_does_not_come_back(partitioned: bool, tmp_path: Path) -> None:
    """The index does not have it, as a delete hides it, so a writer who asks the index inserts it once more."""
    table = HoodieTable.create(tmp_path, SCHEMA, record_key="id", ordering="ts", table_version=9)
    table.upsert([row("a", 1), row("b", 1)], BESIDE_OTHERS)
    table.index.build("record_index", options=QUICK, partitioned=partitioned)
    table.upsert([row("a", 9, deleted=True)], BESIDE_OTHERS)
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    table.refresh().upsert([row("a", 5, "late")], BESIDE_OTHERS)
    by_index = {"hoodie.index.type": "RECORD_LEVEL_INDEX" if partitioned else "GLOBAL_RECORD_LEVEL_INDEX"}
    table.refresh().upsert([row("a", 4, "new")], {**BESIDE_OTHERS, **by_index})
    check(tmp_path, ["a", "b"])
    with pytest.raises(ConflictError, match="another file group"):
        table.refresh().run_compaction(plan, options=BESIDE_OTHERS)
    table.refresh().rollback(plan, options=BESIDE_OTHERS)
    table.refresh().compact(options=BESIDE_OTHERS)
    check(tmp_path, ["a", "b"])
    assert read_names(tmp_path) == ["n", "new"]


def test_a_compaction_that_would_change_what_a_later_write_told_is_refused(tmp_path: Path) -> None:
    """Partial updates: the row that wins takes the value from the later log, if it is not compacted with its past."""
    payload = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
    table = HoodieTable.create(tmp_path, SCHEMA, record_key="id", ordering="ts", table_version=9, properties=payload)
    table.upsert([row("a", 1, "old"), row("b", 1)], BESIDE_OTHERS)
    table.index.build("record_index", options=QUICK)
    table.index.build("secondary_index_by_name", "name", options=QUICK)
    table.upsert([row("a", 9, None)], BESIDE_OTHERS)
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    table.refresh().upsert([row("a", 5, "late")], BESIDE_OTHERS)
    names = read_names(tmp_path)
    with pytest.raises(ConflictError, match="later writes"):
        table.refresh().run_compaction(plan, options=BESIDE_OTHERS)
    check(tmp_path, ["a", "b"])
    table.refresh().rollback(plan, options=BESIDE_OTHERS)
    table.refresh().compact(options=BESIDE_OTHERS)
    check(tmp_path, ["a", "b"])
    assert names == read_names(tmp_path) == ["late", "n"]


def make_stale_plan(base: Path, version: int = 9) -> str:
    """A table whose pending compaction would bring a key back that another file group has by now."""
    table = make_table(base, version)
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    table.refresh().upsert([row("a", 5, "late")], BESIDE_OTHERS)
    table.refresh().upsert([row("a", 4, "new")], {**BESIDE_OTHERS, "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"})
    return plan


def test_services_roll_a_plan_back_that_is_too_old_and_plan_anew(tmp_path: Path) -> None:
    plan = make_stale_plan(tmp_path)
    due_at_once = {"hoodie.compact.inline.max.delta.commits": "1"}
    report = HoodieTable.open(tmp_path).services(run=True, options={**BESIDE_OTHERS, **due_at_once})
    told = {each.service: each.text for each in report.steps}
    assert {each.outcome for each in report.steps} == {"done"}
    assert told["pending plans"].startswith(f"The plan of compaction {plan} was too old")
    assert "merged" in told["compaction"]
    check(tmp_path, ["a", "b"])
    assert not HoodieTable.open(tmp_path).timeline.select_pending()


def test_services_delete_what_is_in_the_way_where_the_plan_must_stay(tmp_path: Path) -> None:
    """Up to version 6 later log files are named after it."""
    plan = make_stale_plan(tmp_path, 6)
    with pytest.raises(ConflictError, match=r"services .* delete the key there"):
        HoodieTable.open(tmp_path).run_compaction(plan, options=BESIDE_OTHERS)
    before = HoodieTable.open(tmp_path).scan().to_arrow().sort_by("id")
    report = HoodieTable.open(tmp_path).services(run=True, options=BESIDE_OTHERS, only=["pending plans"])
    assert [each.outcome for each in report.steps] == ["done"]
    columns = ["_hoodie_commit_time", "id", "name", "ts"]
    after = HoodieTable.open(tmp_path).scan().to_arrow().sort_by("id")
    assert after.select(columns).equals(before.select(columns))
    check(tmp_path, ["a", "b"])


def test_a_key_that_reads_see_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer has written it since the compaction was compared."""
    make_stale_plan(tmp_path, 6)
    [first] = {file_id for key, _, file_id in read_places(tmp_path) if key == "b"}

    def refuse(*_: Any, **__: Any) -> None:
        error = StalePlanError("too old")
        error.returning = {("", first): pa.array(["b"])}
        raise error

    monkeypatch.setattr(Compaction, "run", refuse)
    report = HoodieTable.open(tmp_path).services(run=True, options=BESIDE_OTHERS, only=["pending plans"])
    assert [each.outcome for each in report.steps] == ["conflict"]
    assert "written meanwhile" in report.steps[0].text
    check(tmp_path, ["a", "b"])


def test_an_upgrade_goes_on_past_a_plan_that_is_too_old(tmp_path: Path) -> None:
    make_stale_plan(tmp_path, 6)
    HoodieTable.open(tmp_path).upgrade(9, options=BESIDE_OTHERS)
    check(tmp_path, ["a", "b"])


def test_a_downgrade_goes_on_past_a_plan_that_is_too_old(tmp_path: Path) -> None:
    make_stale_plan(tmp_path)
    HoodieTable.open(tmp_path).downgrade(8, options=BESIDE_OTHERS)
    check(tmp_path, ["a", "b"])


def read_names(base: Path) -> list[str]:
    return sorted(HoodieTable.open(base).scan(["name"]).to_arrow()["name"].to_pylist())


def test_a_merger_that_deletes_and_brings_back(tmp_path: Path) -> None:
    """The statistics of its log files count updates alone."""
    schema = pa.schema([("id", pa.string()), ("qty", pa.int64())])
    table = HoodieTable.create(tmp_path, schema, record_key="id", merger=Sums, merge_mode="CUSTOM")
    table.insert([{"id": "a", "qty": 100}, {"id": "b", "qty": 1}], BESIDE_OTHERS, merger=Sums)
    table.index.build("record_index", options=QUICK)
    seen = [read_keys(tmp_path)]
    for quantity in (60, -20):
        table.refresh().upsert([{"id": "a", "qty": quantity}], BESIDE_OTHERS, merger=Sums)
        rows = table.refresh().scan(["id"], merger=Sums).to_arrow()
        assert read_keys(tmp_path) == sorted(rows["id"].to_pylist())
        seen.append(read_keys(tmp_path))
    plan = table.schedule_compaction(options=BESIDE_OTHERS)
    assert plan is not None
    table.refresh().upsert([{"id": "b", "qty": 200}], BESIDE_OTHERS, merger=Sums)
    table.refresh().run_compaction(plan, options=BESIDE_OTHERS, merger=Sums)
    assert [*seen, read_keys(tmp_path)] == [["a", "b"], ["b"], ["a", "b"], ["a"]]


def read_keys(base: Path) -> list[str]:
    return [key for key, _, _ in read_index(base)]
