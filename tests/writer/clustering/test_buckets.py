"""Buckets of consistent hashing that split, merge and are written anew by a clustering."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import (
    ConflictError,
    CorruptFileError,
    InvalidQueryError,
    InvalidTableError,
    UnsupportedFeatureError,
)
from hoodie_py.formats.config.hashing_metadata import CONSISTENT_FOLDER, GroupResize, HashingMetadata, RangeChange
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.formats.timeline.instants import locate_requested
from hoodie_py.formats.timeline.replace_plan import write_clustering_plan
from hoodie_py.writer.index.bucket import find_hash_ranges
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.transaction.commit_protocol import collect_sizes, collect_stats
from hoodie_py.writer.transaction.hash_ranges import load_hash_ranges
from tests.watched_requests import failing_requests, writes
from tests.writer.clustering.blind_writers import look_away
from tests.writer.compaction_tables import QUICK, leftovers, orphans
from tests.writer.written_tables import Kind, contents, row

COUNT, MOST, LEAST = (f"hoodie.bucket.index.{name}num.buckets" for name in ("", "max.", "min."))
SPLIT, MERGE = (f"hoodie.bucket.index.{name}.threshold" for name in ("split", "merge"))
CONSISTENT = {
    **QUICK,
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    COUNT: "4",
}
GROW = {**CONSISTENT, MOST: "6", SPLIT: "0", MERGE: "0"}
SHRINK = {**CONSISTENT, LEAST: "2", SPLIT: "1000", MERGE: "1000"}
KINDS = [Kind(version, merge_on_read=True) for version in (9, 8, 6)]
FLAT = Kind(9, merge_on_read=True, partitioned=False)
every_kind = pytest.mark.parametrize("kind", [*KINDS, FLAT], ids=str)


def rows(numbers: Iterable[int], ts: int = 1, name: str = "a") -> list[dict[str, Any]]:
    return [row(number, ts, name) for number in numbers]


def filled(kind: Kind, base: Path) -> HoodieTable:
    """Base files and log files in every bucket, and deleted rows."""
    table = HoodieTable.open(kind.create(base))
    table.upsert(rows(range(60)), CONSISTENT)
    table.upsert(rows(range(0, 80, 3), 2, "b"), QUICK)
    table.delete([row(1)["id"], row(2)["id"]] if kind.partitioned else rows([1, 2]), QUICK)
    return table


def whole(table: HoodieTable) -> list[dict[str, Any]]:
    found = table.scan().to_arrow().drop_columns(["_hoodie_file_name"]).to_pylist()
    return sorted(found, key=lambda each: each["_hoodie_record_key"])


def ring(table: HoodieTable, partition: str) -> HashingMetadata:
    found = load_hash_ranges(HoodieTable.open(table.uri)._snapshot, partition)
    assert found is not None
    return found


def partitions(table: HoodieTable) -> list[str]:
    return sorted({each.partition_path for each in table.file_slices()})


def check(table: HoodieTable, counts: Mapping[str, int] | int) -> None:
    """Every key is there once, in the file group of its range; ``counts`` are numbers of ranges."""
    found = table.scan().to_arrow()
    assert len(set(found["_hoodie_record_key"].to_pylist())) == found.num_rows
    for partition in partitions(table):
        ranges = ring(table, partition)
        assert len(ranges.bounds) == (counts if isinstance(counts, int) else counts[partition])
        own = found.filter(pa.compute.equal(found["_hoodie_partition_path"], partition))
        places = find_hash_ranges(own["_hoodie_record_key"], (), ranges.bounds).tolist()
        names = own["_hoodie_file_name"].to_pylist()
        assert all(name.startswith(ranges.file_ids[at]) for at, name in zip(places, names, strict=True))
        assert {each.file_id for each in table.file_slices() if each.partition_path == partition} <= set(
            ranges.file_ids
        )


def planned(table: HoodieTable, options: Mapping[str, str]) -> str:
    instant = table.schedule_clustering(options)
    assert instant is not None
    return instant


def files_of_ranges(table: HoodieTable) -> set[str]:
    folder = Path(table.uri.removeprefix("file://")) / CONSISTENT_FOLDER
    return {each.name for each in folder.rglob("*") if each.is_file() and not each.name.endswith(".crc")}


@every_kind
def test_buckets_split_then_merge_and_writes_follow_them(kind: Kind, tmp_path: Path) -> None:
    table = filled(kind, tmp_path / "t")
    before = whole(table)
    check(table, 4)
    result = table.cluster(options=GROW)
    assert (result.groups_replaced, result.files_written) == (4 * len(partitions(table)), len(table.file_slices()))
    assert whole(table) == before == whole(HoodieTable.open(tmp_path / "t"))
    check(table, 6)
    assert all(each.log_files == () for each in table.file_slices())
    assert files_of_ranges(table) == {
        "00000000000000.hashing_meta", f"{result.instant}.hashing_meta", f"{result.instant}.commit"
    }  # fmt: skip
    last = table.timeline.instants[-1]
    assert (last.request_time, last.action, last.state) == (result.instant, "replacecommit", "completed")
    assert leftovers(tmp_path / "t") == []
    table.upsert(rows(range(0, 90, 2), 5, "c"), QUICK)
    assert contents(table)[row(0)["id"]] == (5, "c")
    check(table, 6)
    before = whole(table)
    result = table.cluster(options=SHRINK)
    assert whole(table) == before
    check(table, 2)
    table.compact(options=QUICK)
    table.upsert(rows(range(100), 6, "d"), QUICK)
    table.clean(1, QUICK)
    assert set(contents(table).values()) == {(6, "d")}
    check(table, 2)
    assert orphans(tmp_path / "t") == []


def test_rows_are_sorted_in_each_bucket(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    table.cluster(options={**GROW, "hoodie.clustering.plan.strategy.sort.columns": "name,id"})
    check(table, 6)
    for each in table.file_slices():
        assert each.base_file is not None
        read = table.scan(columns=["name", "id", "_hoodie_file_name"]).to_arrow()
        own = read.filter(pa.compute.equal(read["_hoodie_file_name"], each.base_file.name)).to_pylist()
        assert own == sorted(own, key=lambda one: (one["name"], one["id"]))


def test_without_options_only_the_files_change(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    before, old = whole(table), {part: ring(table, part) for part in partitions(table)}
    table.cluster(options=QUICK)
    assert whole(table) == before
    for part, ranges in old.items():
        new = ring(table, part)
        assert (new.bounds, new.number, new.first_buckets) == (ranges.bounds, 1, 4)
        assert not set(new.file_ids) & set(ranges.file_ids)


def test_a_bucket_alone_stays_if_the_options_say_so(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    alone = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false"}
    report = table.schedule_clustering({**QUICK, **alone}, dry_run=True)
    assert report.groups == ()
    assert {reason for *_, reason in report.left_out} == {"its bucket is neither split nor merged"}
    assert str(report) == "No clustering of t: no bucket is to change, or none is free."
    report = table.schedule_clustering({**GROW, **alone}, dry_run=True)
    assert [each.new_files for each in report.groups] == [2] * 4
    flink = {"hoodie.clustering.plan.strategy.class": "x.FlinkConsistentBucketClusteringPlanStrategy"}
    assert len(table.schedule_clustering({**GROW, **flink}, dry_run=True).groups) == 4
    [service] = [each for each in table.services(options=QUICK).services if each.name == "clustering"]
    assert service.state == "not due"


@every_kind
def test_a_plan_is_not_in_force_until_it_is_carried_out(kind: Kind, tmp_path: Path) -> None:
    table = filled(kind, tmp_path / "t")
    before = whole(table)
    instant = planned(table, GROW)
    assert table.schedule_clustering(GROW) is None
    assert files_of_ranges(table) == {"00000000000000.hashing_meta"}
    with pytest.raises(ConflictError, match="pending clustering replaces"):
        table.upsert(rows([2], 9), QUICK)
    table.upsert(rows([5], 9), {**QUICK, "hoodie.clustering.updates.strategy": "x.SparkAllowUpdateStrategy",
                 "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"})  # fmt: skip
    assert table.timeline.find(instant) is None
    assert contents(table)[row(5)["id"]] == (9, "a")
    before = whole(table)
    instant = planned(table, GROW)
    assert table.run_clustering(instant, options=QUICK).instant == instant
    assert whole(table) == before
    check(table, 6)


@every_kind
def test_a_failed_run_can_be_repeated_or_rolled_back(kind: Kind, tmp_path: Path) -> None:
    completed = writes(r"/t/\.hoodie/(timeline/)?[\d_]+\.replacecommit$")
    table = filled(kind, tmp_path / "t")
    before = whole(table)
    instant = planned(table, GROW)
    with failing_requests(completed, SystemExit), pytest.raises(SystemExit):
        table.run_clustering(instant, options=QUICK)
    table = HoodieTable.open(tmp_path / "t")
    assert whole(table) == before
    check(table, 4)
    assert f"{instant}.hashing_meta" in files_of_ranges(table)  # of a pending instant, so without effect
    assert table.run_clustering(instant, LocalEngine(1), QUICK).instant == instant
    check(table, 6)
    instant = planned(table, SHRINK)
    with failing_requests(completed, SystemExit), pytest.raises(SystemExit):
        table.run_clustering(instant, options=QUICK)
    table = HoodieTable.open(tmp_path / "t")
    table.rollback(instant, QUICK)
    assert not any(each.startswith(str(instant)) for each in files_of_ranges(table))
    table.upsert(rows(range(0, 60, 2), 7, "z"), QUICK)
    check(table, 6)


def _write_beside(table: HoodieTable, instant: str, patched: pytest.MonkeyPatch, *, twice: bool) -> None:
    """Change rows of planned buckets, as Java's writers may: ``twice``, so that the new file groups get them, too."""
    base = Path(table.uri.removeprefix("file://"))
    [pending] = HoodieTable.open(table.uri).timeline.select_pending()
    heirs: dict[str, str] = {}
    for group in table._snapshot.timeline.read_replace_plan(pending).groups or ():
        resize = GroupResize.from_extra(group.extra)
        assert resize is not None
        heirs[group.slices[0].file_id] = resize.file_ids[0]

    def name_copy(name: str) -> str:
        _, _, rest = name.partition(".log")
        return f".{heirs[name[1:].partition('_')[0]]}_{instant}.log{rest}"

    def copy(stat: WriteStat) -> WriteStat:
        folder, _, name = (stat.path or "").rpartition("/")
        heir = heirs[stat.file_id or ""]
        path = f"{folder}/{name_copy(name)}".lstrip("/")
        shutil.copy(base / (stat.path or ""), base / path)
        return replace(stat, file_id=heir, path=path)

    def collect(results: Any) -> Any:
        own = collect_stats(results)
        return {path: (*stats, *map(copy, stats)) for path, stats in own.items()} if twice else own

    def measure(results: Any) -> Any:
        own = collect_sizes(results)
        return {
            path: {**sizes, **{name_copy(name): sizes[name] for name in sizes if twice}} for path, sizes in own.items()
        }

    look_away(patched)
    patched.setattr("hoodie_py.writer.commit.write_commit.collect_stats", collect)
    patched.setattr("hoodie_py.writer.commit.write_commit.collect_sizes", measure)
    table.upsert(rows(range(0, 60, 3), 7, "beside"), QUICK)


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids=str)
def test_changes_that_are_in_old_and_new_buckets_are_kept(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(kind, tmp_path / "t")
    table.index.build("files", options=QUICK)
    instant = planned(table, QUICK)
    with monkeypatch.context() as patched:
        _write_beside(table, instant, patched, twice=True)
    table = HoodieTable.open(tmp_path / "t")
    before = whole(table)
    assert len({each["id"] for each in before}) == len(before)
    assert contents(table)[row(3)["id"]] == (7, "beside")
    assert (report := table.verify()).is_right, str(report)
    table.run_clustering(instant, options=QUICK)
    assert whole(table) == before
    table.compact(options=QUICK)
    assert whole(table) == before
    check(table, 4)
    instant = planned(table, QUICK)
    with monkeypatch.context() as patched:
        _write_beside(HoodieTable.open(table.uri), instant, patched, twice=True)
    table = HoodieTable.open(tmp_path / "t")
    before = whole(table)
    table.rollback(instant, QUICK)
    assert not list((tmp_path / "t").rglob(f".*_{instant}.log*"))
    assert whole(table) == before
    check(table, 4)


def test_what_a_lost_write_left_in_new_buckets_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(KINDS[0], tmp_path / "t")
    table.index.build("files", options=QUICK)
    instant = planned(table, QUICK)
    with monkeypatch.context() as patched:
        _write_beside(table, instant, patched, twice=True)
        before = whole(HoodieTable.open(table.uri))
        _write_beside(HoodieTable.open(table.uri), instant, patched, twice=True)
    completed = HoodieTable.open(table.uri).timeline.select_writes().last
    assert completed is not None
    next((tmp_path / "t/.hoodie/timeline").glob(f"{completed.request_time}_*.deltacommit")).unlink()
    lost = HoodieTable.open(table.uri)
    assert whole(lost) == before
    assert (report := lost.verify()).is_right, str(report)


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids=str)
def test_changes_that_are_in_old_buckets_only_stop_the_clustering(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(kind, tmp_path / "t")
    instant = planned(table, QUICK)
    with monkeypatch.context() as patched:
        _write_beside(table, instant, patched, twice=False)
    before = whole(table)
    with pytest.raises(ConflictError, match="written to since"):
        HoodieTable.open(table.uri).run_clustering(instant, options=QUICK)
    assert whole(HoodieTable.open(table.uri)) == before


def test_a_restore_gives_the_old_ranges_back(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    before = whole(table)
    saved = table.savepoint(options=QUICK)
    table.cluster(options=GROW)
    table.upsert(rows(range(10), 8, "later"), QUICK)
    table.restore(saved.instant, QUICK)
    assert files_of_ranges(table) == {"00000000000000.hashing_meta"}
    assert whole(table) == before
    check(table, 4)
    table.upsert(rows(range(70), 9, "again"), QUICK)
    check(table, 4)


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids=str)
def test_archived_ranges_stay_in_force(kind: Kind, tmp_path: Path) -> None:
    table = filled(kind, tmp_path / "t")
    result = table.cluster(options=GROW)
    folder = tmp_path / "t" / CONSISTENT_FOLDER
    marks = list(folder.rglob("*.commit"))
    for each in marks:  # as after a death right behind the commit
        each.unlink()
    check(table, 6)
    assert not list(folder.rglob("*.commit"))  # loading writes nothing
    for ts in range(10, 14):
        table.upsert(rows(range(8), ts, "x"), QUICK)
    table.clean(1, QUICK)
    for ts in range(14, 17):
        table.upsert(rows(range(8), ts, "x"), QUICK)
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1",
            "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"}  # fmt: skip
    table.archive({**QUICK, **keep})
    assert result.instant is not None
    assert table.timeline.find(result.instant) is None
    assert sorted(folder.rglob("*.commit")) == sorted(marks)
    check(table, 6)
    for each in marks:  # archived without it, as Java may do: the new file groups tell
        each.unlink()
    check(table, 6)
    table.upsert(rows(range(60), 20, "y"), QUICK)
    check(table, 6)


def test_ranges_of_nobody_are_refused(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    old = ring(table, "p0")
    stray = replace(old, instant="20200101000000000", number=1, file_ids=(*old.file_ids[:-1], "never-there-0"))
    path = tmp_path / "t" / CONSISTENT_FOLDER / "p0" / "20200101000000000.hashing_meta"
    path.write_bytes(stray.to_bytes())
    with pytest.raises(UnsupportedFeatureError, match="rolled back, remove its file"):
        table.upsert(rows([2], 9), QUICK)
    path.unlink()
    table.upsert(rows([2], 9), QUICK)


def _replan(table: HoodieTable, instant: str, change: Any) -> None:
    """Change the groups of a pending plan as ``change`` says."""
    [pending] = HoodieTable.open(table.uri).timeline.select_pending()
    plan = table._snapshot.timeline.read_replace_plan(pending)
    new = replace(plan, groups=tuple(change(list(plan.groups or ()))))
    files, path = table._snapshot.files, locate_requested(table.config, pending)
    files.put(path, write_clustering_plan(new, files.java_uri))


def _other_number(groups: list[Any]) -> list[Any]:
    return [replace(each, extra={**each.extra, "clustering.group.sequence.no": "3"}) for each in groups]


def _without_ranges(groups: list[Any]) -> list[Any]:
    return [replace(each, extra={}) for each in groups]


def _half_without(groups: list[Any]) -> list[Any]:
    return [*_without_ranges(groups[:1]), *groups[1:]]


def _swapped(groups: list[Any]) -> list[Any]:
    one, other = groups[0], next(each for each in groups[1:] if each.slices[0].partition_path == "p0")
    rest = [each for each in groups if each not in (one, other)]
    return [replace(one, extra=other.extra), replace(other, extra=one.extra), *rest]


def _shifted(groups: list[Any]) -> list[Any]:
    resize = GroupResize.from_extra(groups[0].extra)
    assert resize is not None
    moved = (RangeChange(resize.changes[0].bound - 1, None), *resize.changes[1:])
    return [replace(groups[0], extra=replace(resize, changes=moved).to_extra()), *groups[1:]]


def _leaky(groups: list[Any]) -> list[Any]:
    """A new range takes hashes of a bucket that the plan does not name."""
    resize = GroupResize.from_extra(groups[0].extra)
    assert resize is not None
    far = RangeChange((resize.changes[0].bound + (1 << 29)) % (1 << 31), "leak-0")
    return [replace(groups[0], extra=replace(resize, changes=(*resize.changes, far)).to_extra())]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (_other_number, ConflictError, "have changed since"),
        (_without_ranges, UnsupportedFeatureError, "says nothing of ranges"),
        (_half_without, InvalidTableError, "says nothing of ranges"),
        (_swapped, InvalidTableError, "would not be those of its new ones"),
        (_shifted, CorruptFileError, "removes a range"),
        (_leaky, InvalidTableError, "would not be those of its new ones"),
    ],
)
def test_plans_that_would_lose_keys_are_refused(change: Any, error: type[Exception], text: str, tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    before = whole(table)
    instant = planned(table, GROW)
    _replan(table, instant, change)
    with pytest.raises(error, match=text):
        HoodieTable.open(table.uri).run_clustering(instant, options=QUICK)
    table.rollback(instant, QUICK)
    assert whole(HoodieTable.open(table.uri)) == before
    check(table, 4)


def test_keys_in_other_buckets_than_their_hashes_say_are_not_moved(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    before = whole(table)
    path = tmp_path / "t" / CONSISTENT_FOLDER / "p0" / "00000000000000.hashing_meta"
    found = json.loads(path.read_bytes())
    ids = [each["fileIdPrefix"] for each in found["nodes"]]
    for node, other in zip(found["nodes"], [*ids[1:], ids[0]], strict=True):
        node["fileIdPrefix"] = other
    path.write_bytes(json.dumps(found).encode())
    with pytest.raises(InvalidTableError, match="another bucket than its hash says"):
        table.cluster(options=GROW)
    assert whole(HoodieTable.open(table.uri)) == before


def test_strategies_are_those_of_the_kind_of_table(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    plan, run = "hoodie.clustering.plan.strategy.class", "hoodie.clustering.execution.strategy.class"
    for key, name in ((plan, "SparkSizeBasedClusteringPlanStrategy"), (run, "SparkSortAndSizeExecutionStrategy")):
        with pytest.raises(UnsupportedFeatureError, match=f"{name}.*for this table"):
            table.schedule_clustering({**QUICK, key: f"x.{name}"})
    other = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "other"))
    other.upsert(rows(range(5)), QUICK)
    for key, name in (
        (plan, "SparkConsistentBucketClusteringPlanStrategy"),
        (run, "SparkConsistentBucketClusteringExecutionStrategy"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=f"{name}.*for this table"):
            other.schedule_clustering({**QUICK, key: f"x.{name}"})
    copied = HoodieTable.open(Kind(9, merge_on_read=False).create(tmp_path / "cow"))
    with pytest.raises(InvalidQueryError, match="needs a merge-on-read table"):
        copied.upsert(rows(range(5)), CONSISTENT)
