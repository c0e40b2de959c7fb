"""Files of a metadata table are read once, and counted."""

from __future__ import annotations

import pickle

from hoodie_py.files import TableFiles
from hoodie_py.table.indexes.counted_files import CountedFiles


def make_files(name: str) -> CountedFiles:
    files = TableFiles.open(f"memory://counted_files/{name}")
    files.put("a", b"0123456789")
    return CountedFiles(files)


def test_bytes_that_were_read_are_kept() -> None:
    files = make_files("kept")
    assert [files.read_range("a", 2, 5) for _ in range(3)] == [b"234"] * 3
    assert (files.calls, files.bytes) == (1, 3)
    views = [bytes(files.read_view("a", lambda size: memoryview(bytearray(size)))) for _ in range(2)]
    assert views == [b"0123456789"] * 2
    assert (files.calls, files.bytes) == (2, 13)


def test_other_requests_are_counted() -> None:
    files = make_files("counted")
    assert [each.name for each in files.list("")] == ["a"]
    assert files.exists("a")
    assert files.stat("a").size == 10
    assert files.read("a", 4) == b"0123"
    assert files.read_ranges("a", [(0, 1), (9, 10)]) == [b"0", b"9"]
    assert len(files.list_many([""])) == 1
    assert (files.calls, files.bytes) == (6, 6)


def test_a_copy_in_another_process_is_plain() -> None:
    files = make_files("copied")
    copy = pickle.loads(pickle.dumps(files))
    assert type(copy) is TableFiles
    assert copy == files
