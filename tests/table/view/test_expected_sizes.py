"""Write statistics against the files of the reference tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py.table.view.expected_sizes import find_expected_sizes
from tests.corpus import corpus_names
from tests.table.tables import V6, make_table, open_view

T1, T2 = "20260101000001000", "20260101000002000"
BROKEN = {"empty_log_file_mor_v9"}  # its log file was emptied by hand
NAMES = [name for name in corpus_names() if "bootstrap" not in name]


@pytest.mark.parametrize("name", NAMES)
def test_files_are_what_the_commits_say(name: str, corpus: Callable[[str], Path]):
    view = open_view(corpus(name))
    slices = view.list_slices()
    sizes = find_expected_sizes(view.timeline, slices)
    listed = {log.path: log.size for each in slices for log in each.log_files}
    listed |= {each.base_file.path: each.base_file.size for each in slices if each.base_file is not None}
    assert sizes.keys() <= listed.keys()
    wrong = {path for path, size in sizes.items() if listed[path] != size}
    assert bool(wrong) == (name in BROKEN)
    if not view.timeline.read_archive().instants and "rollback" not in name and not name.startswith("inflight"):
        assert sizes.keys() == listed.keys()


def test_a_log_file_of_version_6_may_be_longer_but_not_shorter(tmp_path: Path):
    name = f".a-0_{T1}.log.1_0-0-0"
    stats = [{"fileId": "a-0", "path": name, "logVersion": 1, "logOffset": 10, "fileSizeInBytes": 30}]
    files = {
        ".hoodie_partition_metadata": b"", f".hoodie/{T1}.deltacommit": {"partitionToWriteStats": {"": stats}},
    }  # fmt: skip
    for size, expected in ((50, 50), (40, 40), (39, 40)):
        root = make_table(tmp_path / str(size), {**files, name: b"x" * size}, **V6)
        view = open_view(root)
        assert find_expected_sizes(view.timeline, view.list_slices()) == {name: expected}


def test_from_version_8_on_log_files_do_not_grow(tmp_path: Path):
    name = f".a-0_{T1}.log.1_0-0-0"
    stats = [{"fileId": "a-0", "path": name, "logVersion": 1, "logOffset": 0, "fileSizeInBytes": 30}]
    files = {
        ".hoodie_partition_metadata": b"",
        f".hoodie/timeline/{T1}_{T2}.deltacommit": {"partitionToWriteStats": {"": stats}},
        name: b"x" * 50,
    }  # fmt: skip
    view = open_view(make_table(tmp_path, files))
    assert find_expected_sizes(view.timeline, view.list_slices()) == {name: 30}
