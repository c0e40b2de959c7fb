"""Which entries of the metadata table a rollback can take back, by the times on both timelines."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.table.indexes import view
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.undo import is_compacted_in_metadata, is_index_compacted_in_metadata
from tests.table.tables import make_table
from tests.writer.clean_tables import Names, at

PARTITIONS = {"hoodie.table.metadata.partitions": "files,record_index"}


def around(root: Path, *own: str) -> Snapshot:
    """A table of version 9 whose metadata table has completed instants: names of files of its timeline."""
    names = Names(root, 9, **PARTITIONS)
    names.done(5)
    make_table(root / ".hoodie/metadata", {f".hoodie/timeline/{name}": b"" for name in own})
    return names.snapshot()


@pytest.mark.parametrize(("requested", "compacted"), [(5, False), (6, False), (7, True)])
def test_keys_are_in_base_files_once_a_compaction_began_after_the_write_completed(
    requested: int, compacted: bool, tmp_path: Path
) -> None:
    """A compaction that was requested after the write, and before it completed, has not read its entries."""
    commit = f"{at(requested)}_{at(9)}.commit"
    snapshot = around(tmp_path / "t", f"{at(5)}_{at(6)}.deltacommit", commit)
    assert is_index_compacted_in_metadata(snapshot, at(5)) == compacted


def test_keys_that_were_never_told_are_in_no_base_file(tmp_path: Path) -> None:
    assert not is_index_compacted_in_metadata(around(tmp_path / "t", f"{at(8)}_{at(9)}.commit"), at(5))


@pytest.mark.parametrize(
    ("own", "compacted"),
    [
        ([f"{at(4)}_{at(9)}.commit"], False),
        ([f"{at(6)}_{at(9)}.commit"], True),
        ([f"{at(6)}.compaction.requested"], True),  # its base files may be there
        ([f"00000000000000000_{at(4)}.deltacommit"], False),
        ([f"00000000000000000_{at(6)}.deltacommit"], True),  # it took files from the folders
        ([f"00000000000000000_{at(6)}.deltacommit", f"{at(5)}_{at(7)}.deltacommit"], False),
    ],
)
def test_entries_of_files_are_in_base_files_of_later_compactions_and_first_commits(
    own: list[str], compacted: bool, tmp_path: Path
) -> None:
    assert is_compacted_in_metadata(around(tmp_path / "t", *own), at(5)) == compacted


@pytest.mark.parametrize(("completed", "before"), [(6, True), (7, False), (8, False), (None, False)])
def test_a_write_that_ended_as_the_first_commit_of_the_metadata_table_did_is_not_in_it(
    completed: int | None, before: bool
) -> None:
    write = Instant(at(5), None if completed is None else at(completed), "deltacommit", "completed")
    first = Instant("0" * 17, at(7), "deltacommit", "completed")
    assert view._is_before(write, first) == before


@pytest.mark.parametrize(("requested", "before"), [(4, True), (5, True), (6, False)])
def test_up_to_version_6_the_name_of_the_first_commit_tells(requested: int, before: bool) -> None:
    write = Instant(at(requested), at(requested), "deltacommit", "completed")
    assert view._is_before(write, Instant(f"{at(5)}010", f"{at(5)}010", "deltacommit", "completed")) == before
