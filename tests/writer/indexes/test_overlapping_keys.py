"""Keys that overlapping writes add and remove: the record index never lacks one in silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import ConflictError, HoodieTable
from hoodie_py.writer.pipeline import write
from integration.histories.overlapping import Pause, open_paused
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

BESIDE = {**QUICK, "hoodie.clean.failed.writes.policy": "LAZY", "hoodie.parquet.small.file.limit": "0"}
KINDS = [Kind(9, True), Kind(9, False), Kind(8, True)]
ACTS: dict[str, Callable[[HoodieTable], object]] = {
    "drop": lambda table: table.delete_partition(["p*"], BESIDE),
    "overwrite": lambda table: table.insert_overwrite([row(6, 1, "w")], BESIDE),
    "delete": lambda table: table.delete(["k2"], BESIDE),
}


def make(base: Path, kind: Kind) -> HoodieTable:
    table = HoodieTable.open(kind.create(base))
    table.insert([row(number, 1, "m") for number in range(4)], BESIDE)
    HoodieTable.open(base).index.build("record_index", options=QUICK)
    return HoodieTable.open(base)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_key_that_a_later_instant_deleted_first_is_a_conflict(kind: Kind, act: str, tmp_path: Path) -> None:
    base = tmp_path / "t"
    known = frozenset(each.request_time for each in make(base, kind).timeline)
    pause = Pause(lambda: ACTS[act](HoodieTable.open(base)), known)
    with pytest.raises(ConflictError, match="'k2'"):
        open_paused(str(base), pause).bulk_insert([row(2, 5, "z")], BESIDE)
    assert pause.error is None
    assert HoodieTable.open(base).verify().is_right
    HoodieTable.open(base).upsert([row(2, 5, "z")], {**QUICK, "hoodie.index.type": "RECORD_INDEX"})
    assert HoodieTable.open(base).scan(filter="id = 'k2'").count() == 1


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_other_keys_land_beside_a_later_delete(kind: Kind, tmp_path: Path) -> None:
    base = tmp_path / "t"
    known = frozenset(each.request_time for each in make(base, kind).timeline)
    pause = Pause(lambda: ACTS["delete"](HoodieTable.open(base)), known)
    open_paused(str(base), pause).bulk_insert([row(10, 5, "z")], BESIDE)
    assert pause.error is None
    assert HoodieTable.open(base).verify().is_right


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_key_that_came_elsewhere_after_the_look_of_a_drop_is_a_conflict(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "t"
    table = make(base, kind)
    choose = write.choose_partitions

    def insert_then_choose(*given: Any, **more: Any) -> Any:
        monkeypatch.undo()
        chosen = choose(*given, **more)
        HoodieTable.open(base).bulk_insert([row(2, 5, "z")], BESIDE)
        return chosen

    monkeypatch.setattr(write, "choose_partitions", insert_then_choose)
    with pytest.raises(ConflictError, match="'k2'"):
        table.delete_partition(["p*"], BESIDE)
    HoodieTable.open(base).delete_partition(["p*"], BESIDE)
    assert HoodieTable.open(base).verify().is_right
