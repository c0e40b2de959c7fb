"""Java Hudi and this package take turns at one table: what either plans and clusters, the other goes on with.

Every step compares all rows and columns: Java's default read, its read without the metadata table, its filtered reads
and our own, with each other and with a model of the rows.
"""

from __future__ import annotations

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from integration.java_hudi.session import JavaHudiError
from integration.java_hudi.tables import Kind, Lake, make_row, same_rows

KINDS = [
    Kind(version, True, metadata, merge_on_read)
    for version in (9, 8, 6)
    for metadata in (True, False)
    for merge_on_read in (True, False)
]
SORT = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"
every_kind = pytest.mark.parametrize("lake", KINDS, ids=str, indirect=True)


def check_clustered(lake: Lake, instant: str) -> None:
    """One completed replace commit, nothing pending, one file group in each partition and no log files."""
    table = lake.open()
    found = table.timeline.find(instant)
    assert found is not None
    assert (found.action, found.state) == ("replacecommit", "completed")
    assert list(table.timeline.select_pending_replacements()) == []
    slices = table.file_slices()
    assert len(slices) == len({each.partition_path for each in slices})
    assert lake.log_files() == 0
    assert not list((lake.path / ".hoodie" / ".temp").glob(instant))


def check_whole(lake: Lake) -> None:
    """The metadata table is right, by Java's check of files and by ours of every entry."""
    lake.check_metadata()
    report = lake.open().verify(data=False)
    assert report.is_right, str(report)


def go_on(lake: Lake, ts: int) -> None:
    """Java writes, clusters and cleans the table as if nobody else had touched it, then we do."""
    lake.change(ts)
    lake.java.clustering(lake.path, lake.kind.service_options)
    lake.check()
    lake.java.clean(lake.path, lake.kind.service_options)
    change_ours(lake, ts + 1)
    lake.open().clean(1)
    lake.check()
    check_whole(lake)


def change_ours(lake: Lake, ts: int) -> None:
    """We update some rows and insert one."""
    numbers = sorted(int(key[1:]) for key in lake.rows)
    rows = [make_row(each, ts, name=f"ours {ts}") for each in [*numbers[::4], max(numbers) + 1]]
    lake.open().upsert(rows)
    lake.note(rows, "upsert")


@every_kind
def test_we_cluster_and_java_goes_on(lake: Lake) -> None:
    before = lake.check()
    result = lake.open().cluster(
        options={SORT: "price,name", LAYOUT: "hilbert" if lake.kind.version == 9 else "linear"}
    )
    assert result.instant is not None
    check_clustered(lake, result.instant)
    same_rows(before, lake.check())
    go_on(lake, 4)


@every_kind
def test_java_plans_and_we_cluster(lake: Lake) -> None:
    before = lake.check()
    instant = lake.java.clustering(lake.path, {**lake.kind.service_options, SORT: "price"}, "schedule")
    assert instant is not None
    with pytest.raises(ConflictError):
        change_ours(lake, 4)
    assert lake.open().run_clustering().instant == instant
    check_clustered(lake, instant)
    same_rows(before, lake.check())
    go_on(lake, 4)


@every_kind
def test_we_plan_and_java_clusters(lake: Lake) -> None:
    before = lake.check()
    instant = lake.open().schedule_clustering({SORT: "name"})
    assert instant is not None
    with pytest.raises(JavaHudiError, match=r"(?i)clustering"):
        lake.change(4)
    assert lake.java.clustering(lake.path, lake.kind.service_options, "execute", instant) == instant
    check_clustered(lake, instant)
    same_rows(before, lake.check())
    go_on(lake, 4)


@every_kind
def test_java_clusters_and_we_go_on(lake: Lake) -> None:
    assert lake.java.clustering(lake.path, lake.kind.service_options) is not None
    change_ours(lake, 4)
    before = lake.check()
    result = lake.open().cluster()
    assert result.instant is not None
    check_clustered(lake, result.instant)
    same_rows(before, lake.check())
    go_on(lake, 5)


INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


@pytest.mark.parametrize("lake", [kind for kind in KINDS if kind.metadata], ids=str, indirect=True)
def test_java_finds_records_by_the_record_index_after_our_clustering(lake: Lake) -> None:
    options = {name.replace(".", "__"): value for name, value in INDEXED.items()}
    lake.write([make_row(1, 4), make_row(60, 4)], **options)
    assert "record_index" in lake.open().config.metadata_partitions
    before = lake.check()
    result = HoodieTable.open(lake.path).cluster(options={SORT: "name"})
    assert result.instant is not None
    same_rows(before, lake.check())
    check_whole(lake)
    lake.write(
        [make_row(number, 5, name="found") for number in range(0, 24, 2) if f"k{number:03d}" in lake.rows], **options
    )
    lake.check()
    change_ours(lake, 6)
    lake.check()
    check_whole(lake)
