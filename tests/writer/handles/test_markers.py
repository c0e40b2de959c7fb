from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import MarkerType
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.writer.handles.markers import Marker, Markers, remove_finished
from hoodie_py.writer.timeline.folder_tree import list_tree, remove_tree

T = "20260101000000000"
ONE = Marker("city=a/day=1", "f-0_0-0-0_20260101000000000.parquet", MarkerType.MERGE)
TWO = Marker("", ".f-0_20260101000000000.log.1_0-0-0", MarkerType.CREATE)


def test_markers_are_found_again(tmp_path: Path) -> None:
    markers = Markers(TableFiles.open(tmp_path), T)
    assert markers.list_announced() == []
    markers.announce(ONE)
    markers.announce(TWO)
    assert markers.list_announced() == sorted([ONE, TWO], key=lambda marker: marker.path)
    place = f".hoodie/.temp/{T}/city=a/day=1/{ONE.file_name}.marker.MERGE"
    assert (tmp_path / place).read_bytes() == b""
    assert ONE.path == f"city=a/day=1/{ONE.file_name}"
    assert TWO.path == TWO.file_name


def test_other_files_are_no_markers(tmp_path: Path) -> None:
    folder = tmp_path / f".hoodie/.temp/{T}"
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("DIRECT")
    (folder / "x.parquet.marker.OTHER").write_text("")
    assert Markers(TableFiles.open(tmp_path), T).list_announced() == []


def test_removing_leaves_no_folder(tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    markers = Markers(files, T)
    markers.announce(ONE)
    markers.announce(TWO)
    assert markers.is_announced(ONE)
    markers.remove(ONE)
    assert not markers.is_announced(ONE)
    assert markers.list_announced() == [TWO]
    markers.remove_all()
    markers.remove_all()
    assert list((tmp_path / ".hoodie/.temp").iterdir()) == []


def test_a_marker_cannot_lead_out_of_the_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidTableError):
        Markers(TableFiles.open(tmp_path), T).announce(Marker("../other", "f", MarkerType.CREATE))


def test_markers_of_completed_instants_go(tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    for time in (T, "20260101000000001", "20260101000000002"):
        Markers(files, time).announce(TWO)
    completed = Instant(T, "20260101000000009", "commit", "completed")
    pending = Instant("20260101000000001", None, "deltacommit", "inflight")
    remove_finished(files, Timeline([completed, pending]))
    assert sorted(path.name for path in (tmp_path / ".hoodie/.temp").iterdir()) == [
        "20260101000000001", "20260101000000002",
    ]  # fmt: skip


def test_trees(tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    for path in ("a/b/c", "a/d", "e"):
        files.put(path, b"")
    assert sorted(list_tree(files, "a")) == ["a/b/c", "a/d"]
    assert list(list_tree(files, "none")) == []
    remove_tree(files, "a")
    remove_tree(files, "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e"]
