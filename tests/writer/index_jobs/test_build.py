"""Indexes built over tables of ours: what they hold, who is refused, and builds that die half way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    CorruptFileError,
    HoodieError,
    InvalidQueryError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.indexes.keys import read_file_ids
from hoodie_py.table.indexes.view import read_definitions
from tests.watched_requests import Request, asks, meeting_request
from tests.writer.compaction_tables import QUICK, copied
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.index_jobs.indexed_tables import ROWS, make_table, open_on, read_index
from tests.writer.written_tables import Kind, row

KINDS = [Kind(9, True), Kind(9, False, False), Kind(6, True)]
FEW = {**QUICK, "hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}
STRIDE = int(os.environ.get("HOODIE_CRASH_STRIDE", "97"))  # every so manyth writing call; 1 tries all
ONE = {**FEW, "hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}
ON = {"hoodie.enable.data.skipping": "true"}
FAULTS = ("kill before", "kill after", "refuse", "lose answer")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_record_index_has_the_location_of_each_record(kind: Kind, tmp_path: Path) -> None:
    table = make_table(kind, tmp_path / "t")
    built = table.index.build("record_index", options=FEW)
    assert [(each.name, each.groups) for each in built] == [("files", 1), ("record_index", 2)]
    assert f"record_index with {ROWS - 1} records in 2 file groups" in str(built[1])
    found = read_index(tmp_path / "t", "record_index")
    names, numbers = read_file_ids(join_chunks(found["recordIndexMetadata"]))
    partitions = [each["partitionName"] for each in found["recordIndexMetadata"].to_pylist()]
    places = zip(found["key"].to_pylist(), partitions, (names[number] for number in numbers), strict=True)
    expected = {
        (key, each.partition_path, each.file_id)
        for each, task in zip(table.file_slices(), table.scan(columns=["_hoodie_record_key"]).tasks(), strict=True)
        for batch in task.to_batches()
        for key in batch.column(0).to_pylist()
    }
    assert set(places) == expected


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_list_of_files_has_all_files(kind: Kind, tmp_path: Path) -> None:
    table = make_table(kind, tmp_path / "t")
    assert [each.name for each in table.index.build("files", options=QUICK)] == ["files"]
    rows = read_index(tmp_path / "t", "files").to_pylist()
    found = {each["key"]: dict(each["filesystemMetadata"]) for each in rows}
    partitions = found.pop("__all_partitions__")
    assert set(partitions) == set(found) == ({"p0", "p1"} if kind.partitioned else {"."})
    for key, files in found.items():
        folder = tmp_path / "t" / ("" if key == "." else key)
        on_disk = {
            each.name: each.stat().st_size
            for each in folder.iterdir()
            if ".parquet" in each.name or ".log." in each.name
        }
        assert {name: each["size"] for name, each in files.items()} == on_disk


def test_markers_of_a_build_that_was_killed_right_after_its_commit_go(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    table.index.build("files", options=QUICK)
    own = tmp_path / "t" / ".hoodie" / "metadata" / ".hoodie"
    instant = min(path.name for path in (own / "timeline").glob("*.deltacommit")).partition("_")[0]
    marker = own / ".temp" / instant / "files" / "files-0000-0_0-0-1.hfile.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    table.index.build("record_index", options=FEW)
    assert not (own / ".temp" / instant).exists()


def test_a_partitioned_record_index_has_groups_of_its_own_for_each_partition(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    table.index.build("record_index", partitioned=True, options=QUICK)
    folder = tmp_path / "t/.hoodie/metadata/record_index"
    assert {each.name.split("_")[0] for each in folder.glob("*.hfile")} == {
        "record-index-p0-0000-0", "record-index-p1-0000-0",
    }  # fmt: skip
    assert read_index(tmp_path / "t", "record_index").num_rows == ROWS - 1
    assert table.index.show()[1].kind == "partitioned record_index"


def test_more_records_than_expected_get_more_groups(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    options = {**FEW, "hoodie.metadata.record.index.max.filegroup.size": "96"}
    built = table.index.build("record_index", options=options)
    assert (built[1].groups, built[1].records) == (ROWS - 1, ROWS - 1)
    assert read_index(tmp_path / "t", "record_index").num_rows == ROWS - 1


@pytest.mark.parametrize("version", [6, 8])
def test_the_metadata_table_is_that_of_java(version: int, tmp_path: Path) -> None:
    table = make_table(Kind(version, True), tmp_path / "t")
    last = table.timeline.select_completed().last
    assert last is not None
    table.index.build("record_index", options=FEW)
    own = HoodieTable.open(tmp_path / "t" / ".hoodie" / "metadata")
    expected = [f"{last.request_time}01{i}" for i in range(2)] if version == 6 else [f"{i:017d}" for i in range(2)]
    assert [each.request_time for each in own.timeline] == expected
    assert own.config.is_metadata_table
    text = (tmp_path / "t" / ".hoodie" / ".index_defs" / "index.json").read_text()
    assert json.loads(text)["indexDefinitions"]["record_index"]["indexOptions"] == {"isPartitioned": "false"}
    assert table.config.metadata_partitions == ("files", "record_index")
    assert table.config.metadata_partitions_inflight == ()


def test_an_index_is_shown_and_dropped(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    assert len(table.index.show()) == 0
    assert "no metadata table" in str(table.index.show())
    table.index.build("record_index", options=FEW)
    shown = {each.name: each for each in table.index.show()}
    assert (shown["record_index"].groups, shown["record_index"].files, shown["record_index"].records) == (2, 4, 11)
    assert shown["record_index"].state == "complete"
    assert "record_index" in str(table.index.show())
    assert "<td>record_index</td>" in table.index.show()._repr_html_()
    assert table.index.show().to_arrow()["name"].to_pylist() == ["files", "record_index"]
    assert "record_index" in repr(table.index)
    assert table.index.drop("record_index", options=QUICK) == ("record_index",)
    assert [each.name for each in table.index.show()] == ["files"]
    assert not (tmp_path / "t/.hoodie/metadata/record_index").exists()
    assert table.index.drop("files", options=QUICK) == ("files",)
    assert not (tmp_path / "t/.hoodie/metadata").exists()
    assert table.config.metadata_partitions == ()


def test_an_index_can_be_built_anew_after_it_was_dropped(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    table.index.build("record_index", options=FEW)
    table.index.drop("record_index", options=QUICK)
    assert table.index.build("record_index", options=FEW)[0].instant == "00000000000000002"
    with pytest.raises(InvalidQueryError, match="has the index 'record_index' already"):
        table.index.build("record_index", options=FEW)


@pytest.mark.parametrize(
    ("version", "name", "arguments", "problem"),
    [
        (9, "secondary", {}, "needs a column"),
        (9, "secondary", {"column": "name"}, "needs 'record_index'"),
        (9, "record_index", {"column": "name"}, "takes no column"),
        (9, "files", {"partitioned": True}, "Only record_index can be partitioned"),
        (9, "a,b", {"column": "name"}, "cannot be the name"),
        (9, "x", {"column": "name", "kind": "btree"}, "is no kind of expression index"),
        (9, "secondary_index_x", {"column": "nope"}, "needs 'record_index'"),
        (9, "secondary_index_x", {"column": "name", "function": "year"}, "has no function"),
        (9, "partition_stats", {}, "needs 'column_stats'"),
        (9, "x", {"column": "name", "function": "year"}, "the results depend on Spark"),
        (6, "x", {"column": "name"}, "on tables of version 6"),
        (6, "record_index", {"partitioned": True}, "no partitioned record index"),
    ],
)
def test_what_cannot_be_built_is_refused(
    version: int, name: str, arguments: dict[str, object], problem: str, tmp_path: Path
) -> None:
    table = make_table(Kind(version, True), tmp_path / "t")
    before = (tmp_path / "t/.hoodie/hoodie.properties").read_bytes()
    with pytest.raises((InvalidQueryError, UnsupportedFeatureError), match=problem):
        table.index.build(name, options=QUICK, **arguments)
    assert (tmp_path / "t/.hoodie/hoodie.properties").read_bytes() == before
    assert not (tmp_path / "t/.hoodie/metadata").exists()


def test_no_index_is_dropped_that_another_needs_or_that_is_not_there(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    with pytest.raises(InvalidQueryError, match="has no index 'record_index'"):
        table.index.drop("record_index", options=QUICK)


def test_a_pending_write_of_another_keeps_a_build_out(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    folder = tmp_path / "t" / ".hoodie" / "timeline"
    newest = max(each.name for each in folder.iterdir() if each.is_file())[:17]
    for state in ("requested", "inflight"):
        (folder / f"{int(newest) + 1}.deltacommit.{state}").write_bytes(b"")
    with pytest.raises(ConflictError):
        table.index.build("files", options=QUICK)
    many = {**QUICK, "hoodie.clean.failed.writes.policy": "LAZY"}
    with pytest.raises(ConflictError, match="cannot change while an instant is pending"):
        table.index.build("files", options=many)


def test_definitions_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    table.index.build("record_index", options=FEW)
    path = tmp_path / "t" / ".hoodie" / ".index_defs" / "index.json"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CorruptFileError, match="index definitions cannot be read"):
        table.index.show()
    with pytest.raises(CorruptFileError):
        table.index.drop("record_index", options=QUICK)


def build_records(table: HoodieTable) -> object:
    return table.index.build("record_index", options=ONE)


def build_statistics(table: HoodieTable) -> object:
    return table.index.build("column_stats", options=ONE)


def build_values(table: HoodieTable) -> object:
    return table.index.build("by_name", "name", options=ONE)


def build_expression(table: HoodieTable) -> object:
    return table.index.build("up", "name", function="upper", options=ONE)


def drop_expression(table: HoodieTable) -> object:
    return table.index.drop("up", options=ONE)


def drop_all(table: HoodieTable) -> object:
    return table.index.drop("files", options=ONE)


def list_removals(trace: list[str]) -> list[str]:
    """Return the calls that remove something, save a lock."""
    return [each for each in trace if each.startswith(("delete ", "remove_folder ")) and "lock" not in each]


Act = Callable[[HoodieTable], object]
BUILDS: list[tuple[int, Act, tuple[Act, ...]]] = [
    (9, build_records, ()),
    (6, build_records, ()),
    (8, build_statistics, ()),
    (9, build_expression, ()),
    (9, build_values, (build_records,)),
    (9, drop_expression, (build_records, build_expression)),
    (9, drop_all, (build_records, build_expression)),
]


@pytest.mark.filterwarnings("ignore:The write is committed")
@pytest.mark.parametrize(
    ("version", "act", "before"), BUILDS, ids=[f"v{version}-{act.__name__}" for version, act, _ in BUILDS]
)
def test_a_build_that_dies_leaves_a_table_that_all_can_use(
    version: int, act: Act, before: tuple[Act, ...], tmp_path: Path
) -> None:
    """Reads and writes work as before, and the build, or the drop, can be done again; then every entry is right."""
    small = Kind(version, True, False).create(tmp_path / "start")
    HoodieTable.open(small).insert([row(i) for i in range(3)], options=QUICK)
    for each in before:
        each(HoodieTable.open(small))
    trace = Plan(watched=WRITES)
    act(open_on(FaultyFiles(TableFiles.open(copied(small, tmp_path / "traced")), trace)))
    wanted, seed = HoodieTable.open(tmp_path / "traced").config.metadata_partitions, 7 * version + len(act.__name__)
    for number, fault in enumerate(FAULTS):
        for at in range((seed + number * 11) % STRIDE, len(trace.trace), STRIDE):
            base = copied(small, tmp_path / "case")
            plan = Plan(at=at, fault=fault, watched=WRITES)
            step = (fault, trace.trace[at])
            try:
                act(open_on(FaultyFiles(TableFiles.open(base), plan)))
            except CommitStateUnknownError:
                assert list_removals(plan.trace[at + 1 :]) == [], step
            except (HoodieError, Killed):
                pass
            table = HoodieTable.open(base)
            assert table.scan().to_arrow().num_rows == 3, step
            table.upsert([row(1, 2, "b"), row(7)], options=QUICK)
            assert table.scan(filter="name = 'b' or id = 'k7'", options=ON).count() == 2, step
            assert table.verify(data=False).is_right, (step, str(table.verify(data=False)))
            if table.config.metadata_partitions != wanted or table.config.metadata_partitions_inflight:
                act(table)
            assert table.config.metadata_partitions == wanted, step
            assert table.config.metadata_partitions_inflight == (), step
            table.upsert([row(2, 3, "c"), row(8)], options=QUICK)
            report = table.verify(data=False)
            assert report.is_right, (step, str(report))
            assert all(part.checked for part in report.parts), step


def test_an_index_is_built_for_the_table_as_it_is(tmp_path: Path) -> None:
    table = make_table(Kind(8, False), tmp_path)
    other = HoodieTable.open(tmp_path)
    other.alter(add={"price": pa.float64()}, options=QUICK)
    other.upgrade(options=QUICK)
    table.index.build("column_stats", options=QUICK)
    definition = read_definitions(TableFiles.open(tmp_path), HoodieTable.open(tmp_path).config).get("column_stats")
    assert definition is not None
    assert ("price" in definition.columns, definition.version) == (True, 2)


@pytest.mark.parametrize("change", ["alter", "upgrade"])
def test_a_table_that_changes_before_the_lock_is_a_conflict(change: str, tmp_path: Path) -> None:
    table = make_table(Kind(8, False), tmp_path)

    def change_it() -> None:
        more = {"add": {"price": pa.float64()}} if change == "alter" else {}
        getattr(HoodieTable.open(tmp_path), change)(**more, options=QUICK)

    looked, times = asks(r"/\.hoodie/hoodie\.properties$", "read"), count(1)

    def is_second_look(request: Request) -> bool:
        return looked(request) and next(times) == 2

    with meeting_request(is_second_look, before=change_it), pytest.raises(ConflictError, match="Run it again"):
        table.index.build("column_stats", options=QUICK)
    table.index.build("column_stats", options=QUICK)
    assert table.verify().is_right


def test_an_index_that_another_built_is_dropped_by_its_short_name(tmp_path: Path) -> None:
    table = make_table(Kind(9, False), tmp_path)
    other = HoodieTable.open(tmp_path)
    other.index.build("record_index", options=QUICK)
    other.index.build("by_name", "name", options=QUICK)
    assert table.index.drop("by_name", options=QUICK) == ("secondary_index_by_name",)
