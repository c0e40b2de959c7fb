from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.writer.clustering.updates import roll_back_for_update
from tests.corpus import unpack
from tests.writer.clustering.blind_writers import look_away
from tests.writer.compaction_tables import QUICK, leftovers, orphans
from tests.writer.faulty_files import Killed
from tests.writer.written_tables import Kind, contents, row

PLAN = "hoodie.clustering.plan.strategy"
SMALL = {**QUICK, "hoodie.parquet.small.file.limit": "0"}
KINDS = [Kind(version, mor) for version in (6, 8, 9) for mor in (True, False)]


def rows(numbers: Any, ts: int = 1, name: str = "a") -> list[dict[str, Any]]:
    return [row(number, ts, name) for number in numbers]


def filled(kind: Kind, base: Path, groups: int = 3) -> HoodieTable:
    """A table with some file groups in each partition, log files on some of them, and deleted rows."""
    table = HoodieTable.open(kind.create(base))
    for group in range(groups):
        table.insert(rows(range(group * 10, group * 10 + 10)), SMALL)
    table.upsert(rows(range(0, 10, 3), 2, "b"), SMALL)
    table.delete([row(1)["id"]], SMALL)
    return table


def whole(table: HoodieTable) -> list[dict[str, Any]]:
    found = table.scan().to_arrow().drop_columns(["_hoodie_file_name"]).to_pylist()
    return sorted(found, key=lambda each: each["_hoodie_record_key"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_and_their_meta_columns_stay_and_small_groups_become_one(kind: Kind, tmp_path: Path) -> None:
    table = filled(kind, tmp_path / "t")
    before, groups = whole(table), len(table.file_slices())
    result = table.cluster(options={**QUICK, f"{PLAN}.sort.columns": "name,ts"})
    assert whole(table) == before == whole(HoodieTable.open(tmp_path / "t"))
    partitions = {each.partition_path for each in table.file_slices()}
    assert (len(table.file_slices()), result.groups_replaced, result.files_written) == (len(partitions), groups, 2)
    assert result.rows_written == len(before)
    last = table.timeline.instants[-1]
    assert (last.request_time, last.action, last.state) == (result.instant, "replacecommit", "completed")
    for file_slice in table.file_slices():
        assert file_slice.log_files == ()
        assert file_slice.base_file is not None
        read = table.scan(filter=f"_hoodie_partition_path = '{file_slice.partition_path}'").to_arrow()
        names = read["name"].to_pylist()
        assert names == sorted(names)
        assert set(read["_hoodie_file_name"].to_pylist()) == {file_slice.base_file.name}
    assert leftovers(tmp_path / "t") == []
    table.upsert(rows([2, 500], 5, "c"), QUICK)
    assert contents(table)[row(2)["id"]] == (5, "c")
    assert table.cluster(options=QUICK).instant is not None
    table.clean(1, QUICK)
    assert orphans(tmp_path / "t") == []
    assert len(whole(table)) == len(before) + 1


def test_files_end_at_the_size_that_is_asked_for(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True, partitioned=False).create(tmp_path / "t"))
    table.bulk_insert([row(number, 1, f"{number * 7919 % 10007:05}" * 20) for number in range(4000)], SMALL)
    [old] = table.file_slices()
    assert old.base_file is not None
    small = {f"{PLAN}.target.file.max.bytes": old.base_file.size // 3, "hoodie.parquet.block.size": 4096}
    result = table.cluster(options={**QUICK, **small, f"{PLAN}.sort.columns": "name"})
    assert 3 <= result.files_written <= 5
    bounds = []
    for each in table.file_slices():
        assert each.base_file is not None
        names = pa.parquet.read_table(tmp_path / "t" / each.base_file.path, columns=["name"])["name"].to_pylist()
        bounds.append((min(names), max(names)))
    bounds.sort()
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(bounds))
    assert table.scan().count() == 4000


def test_rows_may_get_new_meta_columns(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    result = table.cluster(options={**QUICK, "hoodie.clustering.preserve.commit.metadata": "false"})
    found = table.scan(columns=["_hoodie_commit_time", "_hoodie_commit_seqno"]).to_arrow()
    assert set(found["_hoodie_commit_time"].to_pylist()) == {result.instant}
    assert len(set(found["_hoodie_commit_seqno"].to_pylist())) == found.num_rows


def test_a_table_whose_rows_are_all_deleted_gets_no_file(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    table.insert(rows(range(4)), QUICK)
    table.delete([row(number)["id"] for number in range(4)], QUICK)
    assert table.cluster(options=QUICK).files_written == 0
    assert (table.scan().count(), table.file_slices()) == (0, [])
    assert table.cluster(options=QUICK).instant is None
    table.insert(rows(range(2)), QUICK)
    assert table.scan().count() == 2


@pytest.mark.parametrize("kind", [Kind(6, merge_on_read=True), Kind(9, merge_on_read=True)], ids=str)
def test_planned_groups_are_left_alone_until_the_plan_is_carried_out(kind: Kind, tmp_path: Path) -> None:
    table = filled(kind, tmp_path / "t")
    before = whole(table)
    instant = table.schedule_clustering(QUICK)
    assert table.schedule_clustering(QUICK) is None
    assert table.schedule_compaction(options=QUICK) is None
    with pytest.raises(ConflictError, match="pending clustering"):
        table.upsert(rows([2], 9), QUICK)
    table.insert(rows([700]), SMALL)
    assert [each for each in whole(table) if "700" not in each["id"]] == before
    with pytest.raises(InvalidQueryError, match="Pending clusterings"):
        table.run_clustering("20200101000000000", options=QUICK)
    assert table.run_clustering(instant, options=QUICK).instant == instant
    assert [each for each in whole(table) if "700" not in each["id"]] == before


def test_an_update_may_roll_the_clustering_back(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    instant = table.schedule_clustering(QUICK)
    allow = {**QUICK, "hoodie.clustering.updates.strategy": "org.x.SparkAllowUpdateStrategy"}
    with pytest.raises(ConflictError):
        table.upsert(rows([2], 9), allow)
    table.upsert(rows([2], 9, "z"), {**allow, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"})
    assert table.timeline.find(str(instant)) is None
    assert contents(table)[row(2)["id"]] == (9, "z")
    odd = table._open_session({"hoodie.clustering.updates.strategy": "Mine"}, None)
    with pytest.raises(UnsupportedFeatureError, match="Mine"):
        roll_back_for_update(odd, ConflictError("x"))


@pytest.mark.parametrize("kind", [Kind(6, merge_on_read=True), Kind(9, merge_on_read=False)], ids=str)
def test_a_group_that_was_written_to_is_never_replaced(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that does not look at pending plans writes to a planned group."""
    table = filled(kind, tmp_path / "t")
    instant = table.schedule_clustering(QUICK)
    with monkeypatch.context() as patch:
        look_away(patch)
        HoodieTable.open(tmp_path / "t").upsert(rows([2], 9, "z"), QUICK)
    with pytest.raises((ConflictError, InvalidTableError)):
        table.run_clustering(instant, options=QUICK)
    assert contents(HoodieTable.open(tmp_path / "t"))[row(2)["id"]] == (9, "z")
    table.rollback(str(instant), QUICK)
    assert table.cluster(options=QUICK).instant is not None
    assert contents(table)[row(2)["id"]] == (9, "z")


def test_inserts_go_on_beside_a_clustering_whose_process_died(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    before, instant = whole(table), table.schedule_clustering(QUICK)

    class Dies:
        def run(self, tasks: Any, on_rows: Any) -> Any:
            yield tasks[0].run(on_rows)
            raise Killed

    with pytest.raises(Killed):
        table.run_clustering(instant, Dies(), QUICK)
    table = HoodieTable.open(tmp_path / "t")
    assert [each.state for each in table.timeline.select_pending()] == ["inflight"]
    table.insert(rows([900]), SMALL)
    assert table.run_clustering(options=QUICK).instant == instant
    assert len(whole(table)) == len(before) + 1
    assert orphans(tmp_path / "t") == []


@pytest.mark.parametrize("name", ["clustering_pending_cow_v9"])
def test_java_s_plan_is_carried_out(name: str, tmp_path: Path) -> None:
    table = HoodieTable.open(unpack(name, tmp_path))
    before = whole(table)
    result = table.run_clustering(options=QUICK)
    assert result.instant is not None
    assert whole(table) == before


def test_clustering_follows_writes_when_it_is_due(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True, partitioned=False).create(tmp_path / "t"))
    inline = {**SMALL, "hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    done = [table.insert(rows([number]), inline).clustering for number in range(5)]
    assert [each is not None for each in done] == [False, True, False, True, False]
    assert len(table.file_slices()) == 2
    assert table.scan().count() == 5
    later = {**SMALL, "hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "1"}
    table.insert(rows([7]), later)
    assert [each.action for each in table.timeline.select_pending()] == ["clustering"]
    assert table.insert(rows([8]), inline).clustering is None
    assert len(table.timeline.select_pending()) == 0
    assert table.scan().count() == 7


def test_what_cannot_be_clustered_is_refused(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t", 1)
    with pytest.raises(UnsupportedFeatureError, match="plan strategy 'Mine'"):
        table.cluster(options={f"{PLAN}.class": "x.Mine"})
    with pytest.raises(UnsupportedFeatureError, match="execution strategy 'Other'"):
        table.cluster(options={"hoodie.clustering.execution.strategy.class": "Other"})
    with pytest.raises(InvalidQueryError, match="layout"):
        table.cluster(options={"hoodie.layout.optimize.strategy": "spiral"})
    with pytest.raises(InvalidQueryError, match="nope"):
        table.cluster(options={f"{PLAN}.sort.columns": "nope"})
    bucket = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "b"))
    bucket.insert(rows(range(40)), {**QUICK, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "8"})
    with pytest.raises(UnsupportedFeatureError, match="bucket index"):
        bucket.cluster()


def test_a_plan_that_names_foreign_files_is_refused(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    instant = table.schedule_clustering(QUICK)
    slices = table.file_slices()
    gone = slices[0].base_file
    assert gone is not None
    (tmp_path / "t" / gone.path).rename(tmp_path / "kept")
    with pytest.raises(InvalidTableError, match="not there"):
        table.run_clustering(instant, options=QUICK)
    (tmp_path / "kept").rename(tmp_path / "t" / gone.path)
    assert table.run_clustering(instant, options=QUICK).instant == instant
