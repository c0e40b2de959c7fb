"""Partitions are deleted and overwritten as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.writer.pipeline.operations import choose_partitions
from tests.writer.compaction_tables import QUICK, copied, opened
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.written_tables import Kind, row

INDEXES = {
    **QUICK,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
KINDS = [Kind(9, True), Kind(6, False)]


def written(kind: Kind, base: Path, options: dict[str, str] = INDEXES) -> HoodieTable:
    table = HoodieTable.open(kind.create(base))
    for ts in (1, 2):
        table.upsert([{**row(number, ts), "part": f"{2020 + number}/x"} for number in range(6)], options)
    return table


def ids(table: HoodieTable) -> list[str]:
    return sorted(table.refresh().scan(columns=["id"]).to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_partitions_are_deleted(kind: Kind, tmp_path: Path) -> None:
    table = written(kind, tmp_path / "t")
    result = table.delete_partition(["2020/x", "202*/nothing", "2099/x"], INDEXES)
    assert result.operation.value == "delete_partition"
    assert ids(table) == ["k1", "k2", "k3", "k4", "k5"]
    table.delete_partition("202[12]/x", INDEXES)
    assert len(ids(table)) == 5
    table.delete_partition("*3/*", INDEXES)
    assert ids(table) == ["k1", "k2", "k4", "k5"]
    assert table.verify().is_right, str(table.verify())
    table.upsert([{**row(0, 9), "part": "2020/x"}], INDEXES)
    assert ids(table) == ["k0", "k1", "k2", "k4", "k5"]
    table.clean(1, QUICK)
    table.delete_partition("*", INDEXES)
    assert ids(table) == []
    assert table.delete_partition("*", INDEXES).instant is None
    assert table.verify().is_right, str(table.verify())


@pytest.mark.parametrize("kind", KINDS[:1], ids=str)
def test_named_partitions_are_overwritten(kind: Kind, tmp_path: Path) -> None:
    table = written(kind, tmp_path / "t")
    new = [{**row(7, 9), "part": "2020/x"}]
    table.insert_overwrite(new, INDEXES, partitions=["2020/x", "2021/x", "2030/x"])
    assert ids(table) == ["k2", "k3", "k4", "k5", "k7"]
    with pytest.raises(InvalidQueryError, match="Rows lie in other partitions"):
        table.insert_overwrite(new, INDEXES, partitions="2021/x")
    table.insert_overwrite([], INDEXES, partitions=["2022/x"])
    table.insert_overwrite([], {**INDEXES, "hoodie.static.overwrite.partition.paths": "2023/x,2024/x"})
    assert ids(table) == ["k5", "k7"]
    assert table.insert_overwrite([], INDEXES).instant is None
    assert table.insert_overwrite([], INDEXES, partitions=["2022/x"]).instant is None
    assert table.verify().is_right, str(table.verify())


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    table = written(Kind(9, True), tmp_path / "t", QUICK)
    for wrong in ("../x", "", "/", [], 7):
        with pytest.raises((InvalidQueryError, TypeError)):
            table.delete_partition(wrong, QUICK)  # type: ignore[arg-type]
    for wrong in (["*"], [], ["../x"]):
        with pytest.raises(InvalidQueryError):
            table.insert_overwrite([row(1)], QUICK, partitions=wrong)
    table.schedule_compaction(options=QUICK)
    with pytest.raises(ConflictError, match="is about to rewrite"):
        table.delete_partition("2020/x", QUICK)
    flat = HoodieTable.open(Kind(9, True, False).create(tmp_path / "flat"))
    assert flat.delete_partition("x", QUICK).instant is None
    flat.upsert([row(1)], QUICK)
    with pytest.raises(InvalidQueryError, match="no partitions"):
        flat.delete_partition("x", QUICK)


def test_a_field_and_its_value_stand_for_the_bare_value(tmp_path: Path) -> None:
    table = written(Kind(9, False), tmp_path / "t", QUICK)
    for path in ("part=2020/x", "part=202*/x", "part=*"):
        assert choose_partitions(table._snapshot, [path]) == choose_partitions(
            table._snapshot, [path.removeprefix("part=")]
        )
    assert choose_partitions(table._snapshot, ["other=2020/x", "2020/part=x"]) == []
    with pytest.raises(InvalidQueryError, match=r"no partition 'part=1999'\. There are: 2020/x, 2021/x.*2025/x"):
        table.delete_partition(["2020/x", "part=1999"], QUICK, missing_ok=False)
    assert len(ids(table)) == 6
    empty = HoodieTable.open(Kind(9, False).create(tmp_path / "empty"))
    with pytest.raises(InvalidQueryError, match=r"no partition 'x'\. It has none at all"):
        empty.delete_partition("x", QUICK, missing_ok=False)


def test_a_star_stands_for_any_characters(tmp_path: Path) -> None:
    table = written(Kind(9, False), tmp_path / "t", QUICK)
    found = {
        pattern: len(choose_partitions(table._snapshot, [pattern]))
        for pattern in ("*", "2020*", "*0/x", "2*2*x", "%2A1/x", "2020/x*", "*/x/*", "2020/x/", "20*020/x")
    }
    assert list(found.values()) == [6, 1, 1, 6, 1, 1, 0, 1, 0]


@pytest.mark.parametrize("fault", ["kill before", "kill after"])
def test_a_deletion_that_is_cut_short_is_whole_or_nothing(fault: str, tmp_path: Path) -> None:
    table = written(Kind(9, True), tmp_path / "t")
    base = tmp_path / "t"
    trace = Plan(watched=WRITES)
    opened(FaultyFiles(TableFiles.open(copied(base, tmp_path / "c")), trace)).delete_partition("2020/x", INDEXES)
    for at in range(0, len(trace.trace), 9):
        copy = copied(base, tmp_path / "c")
        with pytest.raises(Killed):
            opened(FaultyFiles(TableFiles.open(copy), Plan(at=at, fault=fault, watched=WRITES))).delete_partition(
                "2020/x", INDEXES
            )
        assert ids(HoodieTable.open(copy)) in (ids(table), ids(table)[1:])
        after = HoodieTable.open(copy)
        after.delete_partition("2020/x", INDEXES)
        assert ids(after) == ids(table)[1:]
        assert after.verify().is_right, str(after.verify())
