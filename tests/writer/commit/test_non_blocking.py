"""Writers that add log files to the same buckets at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieTable, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.writer.commit.conflicts import Claims, check_conflicts
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.index_jobs import build
from hoodie_py.writer.pipeline import write as write_module
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from tests.writer.clean_tables import Names, at

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string())])
QUICK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "10",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
BESIDE = {**QUICK, **BUCKETS, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
CHECKED = {**QUICK, **BUCKETS, "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
SHARED = ["00000000-0000-0000-0000-000000000000-0", "00000001-0000-0000-0000-000000000000-0"]


def make(base: Path, **more: Any) -> HoodieTable:
    return HoodieTable.create(base, SCHEMA, record_key="id", ordering="ts", **more)


def rows(numbers: range, ts: int) -> list[dict[str, Any]]:
    return [{"id": f"k{number}", "ts": ts, "name": f"w{ts}"} for number in numbers]


def names(base: Path) -> dict[str, str]:
    return {row["id"]: row["name"] for row in HoodieTable.open(base).scan(["id", "name"]).to_arrow().to_pylist()}


def slowly(monkeypatch: pytest.MonkeyPatch, write: Callable[[], Any], meanwhile: Callable[[], Any]) -> None:
    """Write; something else happens between the write's files and its commit."""

    run = LocalEngine.run_jobs

    def run_then_wait(engine: LocalEngine, jobs: Any) -> Sequence[TaskResult]:
        done = run(engine, jobs)
        monkeypatch.setattr(LocalEngine, "run_jobs", run)
        meanwhile()
        return done

    monkeypatch.setattr(LocalEngine, "run_jobs", run_then_wait)
    write()


@pytest.mark.parametrize("began", [False, True], ids=["new buckets", "old buckets"])
@pytest.mark.parametrize("version", [8, 9])
def test_both_count_whoever_commits_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, began: bool
) -> None:
    base = tmp_path / "t"
    table = make(base, table_version=version)
    if began:
        table.upsert(rows(range(2, 12), 1), options=BESIDE)
        table.compact(options=BESIDE)
    older, newer = HoodieTable.open(base), HoodieTable.open(base)
    slowly(
        monkeypatch,
        lambda: older.upsert(rows(range(10), 2), options=BESIDE),
        lambda: newer.upsert(rows(range(4, 10), 3), options=BESIDE),
    )
    expected = {f"k{number}": "w3" if 4 <= number < 10 else "w2" for number in range(10)}
    expected |= {"k10": "w1", "k11": "w1"} if began else {}
    assert names(base) == expected
    assert [each.file_id for each in HoodieTable.open(base).file_slices()] == SHARED
    HoodieTable.open(base).compact(options=BESIDE)
    assert [each.log_files for each in HoodieTable.open(base).file_slices()] == [(), ()]
    assert names(base) == expected
    assert HoodieTable.open(base).verify().is_right


def test_a_compaction_meanwhile_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write completes after the compaction was planned, so its log files belong to the slice after that."""
    base = tmp_path / "t"
    make(base).upsert(rows(range(8), 1), options=BESIDE)
    writing = HoodieTable.open(base)
    slowly(
        monkeypatch,
        lambda: writing.upsert(rows(range(6, 10), 2), options=BESIDE),
        lambda: HoodieTable.open(base).compact(options=BESIDE),
    )
    expected = {f"k{number}": "w2" if number > 5 else "w1" for number in range(10)}
    assert names(base) == expected
    HoodieTable.open(base).compact(options=BESIDE)
    assert names(base) == expected


def test_a_delete_meets_rows_that_it_could_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "t"
    table = make(base)
    slowly(
        monkeypatch,
        lambda: table.upsert(rows(range(3), 1), options=BESIDE),
        lambda: HoodieTable.open(base).delete(pa.table({"id": ["k1"]}), options=BESIDE),
    )
    assert names(base) == {"k0": "w1", "k2": "w1"}


@pytest.mark.parametrize("meanwhile", ["insert_overwrite", "upsert", "bulk_insert"])
def test_base_files_and_overwrites_are_conflicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """A write that is not non-blocking makes a base file, and another file id, for a new bucket."""
    base = tmp_path / "t"
    table = make(base)
    if meanwhile == "insert_overwrite":
        table.upsert(rows(range(4), 1), options=BESIDE)
    other = HoodieTable.open(base)
    with pytest.raises(ConflictError):
        slowly(
            monkeypatch,
            lambda: HoodieTable.open(base).upsert(rows(range(8), 2), options=BESIDE),
            lambda: getattr(other, meanwhile)(rows(range(4), 3), options=CHECKED),
        )
    assert names(base) == {f"k{number}": "w3" for number in range(4)}
    assert HoodieTable.open(base).verify().is_right


def test_a_base_file_in_a_bucket_of_the_write_is_a_conflict(tmp_path: Path) -> None:
    """Log files of others go together with the write's own; a base file in the same file group does not."""
    names = Names(tmp_path / "t")
    names.done(1)
    before = names.snapshot()
    group = "00000001-0000-0000-0000-000000000000-0"
    claims = Claims(frozenset({("p", group)}), non_blocking=True)

    def commit(number: int, name: str, file_id: str = group) -> None:
        stat = {"fileId": file_id, "partitionPath": "p", "path": f"p/{name}"}
        stat |= {"logVersion": 1, "logOffset": 0} if ".log." in name else {}
        names.done(number, content=json.dumps({"partitionToWriteStats": {"p": [stat]}}).encode())

    commit(2, f".{group}_{at(2)}.log.1_0-0-0")
    commit(3, f"00000000-0000-0000-0000-000000000000-0_0-0-0_{at(3)}.parquet", "00000000-0000-0000-0000-000000000000-0")
    check_conflicts(claims, before, names.snapshot())
    commit(4, f"{group}_0-0-0_{at(4)}.parquet")
    with pytest.raises(ConflictError, match="changed a file group") as caught:
        check_conflicts(claims, before, names.snapshot())
    assert caught.value.where["instant"] == at(4)
    assert caught.value.where["file_group"] == group


def test_another_file_group_of_a_bucket_of_the_write_is_a_conflict(tmp_path: Path) -> None:
    names = Names(tmp_path / "t")
    names.done(1)
    before = names.snapshot()
    other = "00000001-1111-0000-0000-000000000000-0"
    stat = {"fileId": other, "partitionPath": "p", "path": f"p/.{other}_{at(2)}.log.1_0-0-0", "logVersion": 1}
    names.done(2, content=json.dumps({"partitionToWriteStats": {"p": [stat]}}).encode())
    own = frozenset({("p", "00000001-0000-0000-0000-000000000000-0"), ("q", "00000002-0000-0000-0000-000000000000-0")})
    with pytest.raises(ConflictError, match="changed a file group"):
        check_conflicts(Claims(own, non_blocking=True), before, names.snapshot())
    apart = frozenset({("q", "00000001-0000-0000-0000-000000000000-0")})
    check_conflicts(Claims(apart, non_blocking=True), before, names.snapshot())


def test_a_checked_write_does_not_pass_over_log_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "t"
    make(base)
    with pytest.raises(ConflictError):
        slowly(
            monkeypatch,
            lambda: HoodieTable.open(base).upsert(rows(range(8), 2), options=CHECKED),
            lambda: HoodieTable.open(base).upsert(rows(range(4), 1), options=BESIDE),
        )
    assert names(base) == {f"k{number}": "w1" for number in range(4)}


def test_a_delete_by_a_filter_is_checked_whatever_the_options_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "t"
    make(base).upsert(rows(range(4), 1), options=BESIDE)
    with pytest.raises(ConflictError):
        slowly(
            monkeypatch,
            lambda: HoodieTable.open(base).delete("ts > 0", options=BESIDE),
            lambda: HoodieTable.open(base).upsert(rows(range(4), 2), options=BESIDE),
        )
    assert names(base) == {f"k{number}": "w2" for number in range(4)}


def test_a_replaced_bucket_needs_another_file_id(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = make(base)
    table.upsert(rows(range(8), 1), options=BESIDE)
    table.insert_overwrite_table(rows(range(1), 2), options=CHECKED)  # the other bucket has no file group any more
    with pytest.raises(UnsupportedFeatureError, match="was replaced"):
        table.upsert(rows(range(8), 2), options=BESIDE)
    table.upsert(rows(range(8), 2), options=CHECKED)
    table.upsert(rows(range(8, 10), 3), options=BESIDE)
    assert names(base) == {f"k{number}": "w2" if number < 8 else "w3" for number in range(10)}


@pytest.mark.parametrize(
    ("more", "options", "error", "match"),
    [
        ({"table_type": "COPY_ON_WRITE"}, BESIDE, InvalidQueryError, "simple bucket index"),
        ({}, {**BESIDE, "hoodie.index.type": "SIMPLE"}, InvalidQueryError, "simple bucket index"),
        ({"table_version": 6}, BESIDE, UnsupportedFeatureError, "below version 8"),
        (
            {},
            {key: value for key, value in BESIDE.items() if key != "hoodie.write.lock.provider"},
            InvalidQueryError,
            "needs hoodie.write.lock.provider",
        ),
    ],
)
def test_refusals(
    tmp_path: Path, more: dict[str, Any], options: dict[str, str], error: type[Exception], match: str
) -> None:
    table = make(tmp_path / "t", **more)
    with pytest.raises(error, match=match):
        table.upsert(rows(range(2), 1), options=options)
    assert list(table.refresh().timeline) == []


def test_a_record_index_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(range(4), 1), options=CHECKED)
    table.index.build("record_index")
    with pytest.raises(UnsupportedFeatureError, match="record_index"):
        table.refresh().upsert(rows(range(2), 2), options=BESIDE)


@pytest.mark.parametrize("begun", [False, True])
def test_an_index_of_keys_that_is_built_meanwhile_keeps_such_writers_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    base = tmp_path / "t"
    table = make(base)
    table.upsert(rows(range(8), 1), BESIDE)
    table.index.build("files", options=QUICK)

    def meanwhile() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "check_nothing_pending", lambda _: None)
            HoodieTable.open(base).index.build("record_index", options=QUICK)

    serve = write_module.run_metadata_services
    monkeypatch.setattr(write_module, "run_metadata_services", lambda *given: (begun or meanwhile(), serve(*given)))
    with pytest.raises(UnsupportedFeatureError, match="has record_index"):
        slowly(monkeypatch, lambda: table.upsert(rows(range(4), 2), BESIDE), lambda: begun and meanwhile())
    assert set(names(base).values()) == {"w1"}
