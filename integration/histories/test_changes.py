"""Changes of ranges: what doing them again finds out, and that wrong changes of a table are noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.reader.record.record import DELETE, INSERT, UPDATE
from hoodie_py.table.changes import plan
from hoodie_py.table.changes.images import Images
from hoodie_py.table.changes.step_reader import StepReader
from hoodie_py.table.changes.steps import Step, WholeSlice
from integration.histories.findings import Counts, Difference
from integration.histories.model import Kind
from integration.histories.operations import Change, Clean, Overwrite, Upsert
from integration.histories.ranges import CHANGE_DATA
from integration.histories.replay import ChangeRow, WrongChange, replay
from integration.histories.rules import EVENT_TIME, Row
from integration.histories.table_under_test import Fault, TableUnderTest
from integration.histories.test_ranges import HISTORY, PLANS, look, put

EVENT = Kind(9, merge_on_read=True, mode=EVENT_TIME)
COW = replace(EVENT, merge_on_read=False)

A, B, C = Row("k1", "p0", 1, 1, "a"), Row("k1", "p0", 2, 1, "b"), Row("k2", "p0", 1, 1, "c")
KEY = ("p0", "k1")

# Doing changes again -----------------------------------------------------------------------------------------------


def done(before: dict[tuple[str, str], Row], *changes: ChangeRow) -> list[dict[tuple[str, str], Row]]:
    return list(replay(before, changes, True, ["1", "2"]).values())


def test_the_rows_after_each_commit() -> None:
    changes = ChangeRow("i", "1", None, A), ChangeRow("u", "2", A, B)
    assert done({}, *changes) == done({}, *reversed(changes)) == [{KEY: A}, {KEY: B}]
    assert done({KEY: A}) == [{KEY: A}, {KEY: A}]
    assert done({KEY: A}, ChangeRow("d", "2", A, None)) == [{KEY: A}, {}]


def test_a_row_that_moves_is_deleted_and_inserted_by_one_commit() -> None:
    assert done({KEY: A}, ChangeRow("i", "1", None, B), ChangeRow("d", "1", A, None))[0] == {KEY: B}


@pytest.mark.parametrize(
    "wrong",
    [
        [ChangeRow("i", "1", None, B)],
        [ChangeRow("u", "1", B, A)],
        [ChangeRow("d", "1", B, None)],
        [ChangeRow("d", "1", C, None)],
        [ChangeRow("u", "1", None, B)],
        [ChangeRow("u", "1", A, None)],
        [ChangeRow("u", "1", A, C)],
        [ChangeRow("x", "1", A, B)],
        [ChangeRow("u", "3", A, B)],
        [ChangeRow("u", "1", A, A), ChangeRow("u", "1", A, A)],
    ],
)
def test_changes_that_cannot_be(wrong: list[ChangeRow]) -> None:
    with pytest.raises(WrongChange):
        done({KEY: A}, *wrong)


# What a history gives ----------------------------------------------------------------------------------------------

TABLES = [EVENT, COW, replace(EVENT, version=6), replace(COW, version=8, partitioned=False)]


@pytest.mark.parametrize(
    "change_data",
    ["", *(pytest.param(each, marks=() if each == "DATA_BEFORE" else pytest.mark.thorough) for each in CHANGE_DATA)],
)
@pytest.mark.parametrize("kind", TABLES, ids=str)
def test_the_changes_of_every_range(tmp_path: Path, kind: Kind, change_data: str) -> None:
    history = HISTORY if kind.merge_on_read else [each for each in HISTORY if not isinstance(each, PLANS)]
    seen = look(tmp_path / "t", replace(kind, change_data=change_data), history, other_times=False).counts.ranges
    assert seen["of changes"] == seen["compared"]
    assert not seen["of changes refused"]


REPLACED = (
    put("k2", 5, "d"), Overwrite((Change(Row("k1", "p0", 2, 3, "c")),)), put("k3", 1, "d"), put("k3", 2, "e"), Clean(1),
)  # fmt: skip


def test_deletes_of_replaced_groups_that_were_cleaned(tmp_path: Path) -> None:
    """The files of a replaced file group are gone: its deletes were left out without an error."""
    assert look(tmp_path / "t", EVENT, REPLACED).counts.ranges["of changes refused"]


@pytest.mark.parametrize("call", range(19, 27))
def test_deletes_of_replaced_groups_that_a_clean_began_to_remove(tmp_path: Path, call: int) -> None:
    """A clean was killed between the base file and the log file: deletes of base rows were left out."""
    table = TableUnderTest(str(tmp_path / "t"), EVENT, Counts())
    first = Upsert((*put("k1", 1, "a").changes, *put("k2", 1, "a").changes))
    for each in (first, put("k1", 2, "b"), Overwrite(put("k3", 1, "c").changes), put("k4", 1, "d"), put("k4", 2, "e")):
        table.do(each)
    table.do(Clean(1), Fault(call, "kill before"))
    table.look_at_ranges(100)


# What is noticed ---------------------------------------------------------------------------------------------------


def read_otherwise(patch: pytest.MonkeyPatch, change: Callable[[Step, Images], Iterator[Images]]) -> None:
    plain = StepReader.read

    def read(self: StepReader, step: Step) -> Iterator[Images]:
        for images in plain(self, step):
            yield from change(step, images)

    patch.setattr(StepReader, "read", read)


def _with_codes(images: Images, codes: Any) -> Images:
    return replace(images, changes=replace(images.changes, codes=codes.astype(np.int8)))


def without_deletes(patch: pytest.MonkeyPatch) -> None:
    def change(step: Step, images: Images) -> Iterator[Images]:
        for at in np.flatnonzero(images.changes.codes != DELETE):
            yield images.cut(int(at), int(at) + 1)

    read_otherwise(patch, change)


def without_deletes_of_replaced_groups(patch: pytest.MonkeyPatch) -> None:
    def change(step: Step, images: Images) -> Iterator[Images]:
        if not isinstance(step, WholeSlice) or step.is_insert:
            yield images

    read_otherwise(patch, change)


def with_inserts_for_updates(patch: pytest.MonkeyPatch) -> None:
    def change(step: Step, images: Images) -> Iterator[Images]:
        codes = images.changes.codes
        yield _with_codes(images, np.where(codes == UPDATE, INSERT, codes))

    read_otherwise(patch, change)


def with_the_rows_after_as_rows_before(patch: pytest.MonkeyPatch) -> None:
    def change(step: Step, images: Images) -> Iterator[Images]:
        if (images.changes.codes == UPDATE).all():
            images = replace(images, changes=replace(images.changes, before=images.changes.after))
        yield images

    read_otherwise(patch, change)


def with_every_change_twice(patch: pytest.MonkeyPatch) -> None:
    def change(step: Step, images: Images) -> Iterator[Images]:
        yield images
        yield images

    read_otherwise(patch, change)


def with_compactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommitMetadata, "moves_rows", False)


def of_the_first_commit_only(patch: pytest.MonkeyPatch) -> None:
    plain = plan.ChangesPlan._find_touches
    patch.setattr(plan.ChangesPlan, "_find_touches", lambda self: {key: some[:1] for key, some in plain(self).items()})


FAULTS = [
    without_deletes, without_deletes_of_replaced_groups, with_inserts_for_updates, with_the_rows_after_as_rows_before,
    with_every_change_twice, with_compactions, of_the_first_commit_only,
]  # fmt: skip


@pytest.mark.parametrize("change_data", ["", "DATA_BEFORE"])
@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_changes_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any, change_data: str
) -> None:
    if fault is with_compactions and not change_data:
        pytest.skip("without change logs a compaction is found to change nothing")
    fault(monkeypatch)
    with pytest.raises(Difference, match="changes from"):
        look(tmp_path / "t", replace(EVENT, change_data=change_data), other_times=False)
