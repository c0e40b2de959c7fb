"""Rows that a filter chooses become deletes of their keys, in the file groups that hold them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import InvalidQueryError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.writer.index.delete_filter import make_deletes_by_filter
from hoodie_py.writer.records import WriteOperation
from tests.writer.written_tables import Kind, put, records, row


def start(base: Path) -> Snapshot:
    Kind(9, True).create(base)
    put(base, records([row(i) for i in range(6)]), WriteOperation.INSERT)
    put(base, records([row(i, 7, "b") for i in (0, 1)]))
    return open_snapshot(TableFiles.open(base))


def test_rows_of_base_and_log_files(tmp_path: Path) -> None:
    snapshot = start(tmp_path)
    tagged = make_deletes_by_filter(snapshot, "ts = 7 or id = 'k4'", {})
    groups = {each.partition_path: each.file_id for each in snapshot.file_slices()}
    rows = zip(
        tagged.records.keys.to_pylist(),
        tagged.records.partition_paths.to_pylist() if tagged.records.partition_paths else [],
        tagged.file_ids.to_pylist(),
        strict=True,
    )
    assert sorted(rows) == [
        ("k0", "p0", groups["p0"]),
        ("k1", "p1", groups["p1"]),
        ("k4", "p0", groups["p0"]),
    ]
    assert tagged.records.ordering == ()
    assert tagged.records.deletes is not None
    assert tagged.records.deletes.to_pylist() == [True] * 3


def test_nothing_chosen(tmp_path: Path) -> None:
    assert len(make_deletes_by_filter(start(tmp_path), "id = 'nobody'", {})) == 0


def test_a_bad_filter(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError):
        make_deletes_by_filter(start(tmp_path), "nothing = 1", {})


def test_rows_whose_file_group_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = start(tmp_path)
    slices = FileSystemView.list_slices

    asked = iter([True])

    def once(self: FileSystemView, *args: object) -> object:
        return slices(self, *args) if next(asked, False) else []  # type: ignore[arg-type]

    monkeypatch.setattr(FileSystemView, "list_slices", once)
    with pytest.raises(InvalidTableError, match="does not say which file group"):
        make_deletes_by_filter(snapshot, "ts = 7", {})
