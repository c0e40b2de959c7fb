"""New records fill up small base files, the smallest first, and no further than there is room."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.writer.partitioner.small_files import fill_small_files
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, contents, row

PATHS = ("a", "b")


def file_slice(path: str, file_id: str, size: int) -> FileSlice:
    return FileSlice(path, file_id, "1", BaseFile(f"{path}/{file_id}", size, "1", file_id), ())


record = st.tuples(st.sampled_from(PATHS), st.sampled_from((None, None, "known")), st.booleans())
sizes = st.dictionaries(st.tuples(st.sampled_from(PATHS), st.sampled_from("xyz")), st.integers(0, 120), max_size=6)


@given(st.lists(record, max_size=40), sizes, st.integers(0, 110))
def test_new_records_fill_small_files(
    found: list[tuple[str, str | None, bool]], files: dict[tuple[str, str], int], small: int
) -> None:
    paths = pa.chunked_array([pa.array([each[0] for each in found], pa.string())])
    deletes = pa.chunked_array([pa.array([each[2] for each in found], pa.bool_())])
    whole = WriteRecords(pa.table({"p": paths}), paths, paths, deletes)
    known = pa.array([each[1] for each in found], pa.string())
    tagged = TaggedRecords(whole, known, known, np.full(len(found), -1, np.int64))
    slices = [file_slice(path, file_id, size) for (path, file_id), size in files.items()]
    held = [("a", "x")]
    filled = fill_small_files(tagged, slices, row_bytes=10.0, file_bytes=100, small_bytes=small, held=held)
    assert filled.records is whole
    taken: dict[tuple[str, str], int] = {}
    left: dict[str, int] = {}
    for (path, before, deleted), after in zip(found, filled.file_ids.to_pylist(), strict=True):
        if before is not None or deleted:
            assert after == before
        elif after is None:
            left[path] = left.get(path, 0) + 1
        else:
            taken[path, after] = taken.get((path, after), 0) + 1
    room = {key: (100 - size) // 10 for key, size in files.items() if size < small and size <= 90 and key not in held}
    assert all(rows <= room[key] for key, rows in taken.items())
    for (path, file_id), rows in room.items():
        smaller = [key for key in room if key[0] == path and (files[key], key[1]) < (files[path, file_id], file_id)]
        if taken.get((path, file_id)):
            assert all(taken.get(key) == room[key] for key in smaller), "the smallest come first"
        if left.get(path):
            assert taken.get((path, file_id)) == rows


def test_upserts_do_not_leave_a_file_each(tmp_path: Path) -> None:
    for kind, groups in ((Kind(9, False, False), 1), (Kind(9, True, False), 4)):
        base = kind.create(tmp_path / str(kind))
        table = HoodieTable.open(base)
        for start in range(0, 40, 10):
            result = table.upsert([row(i, start + 1) for i in range(start, start + 12)], options=QUICK)
            assert result.rows_inserted == (12 if start == 0 else 10)
        assert len(contents(base)) == 42
        assert len(table.file_slices()) == groups


def test_the_limit_is_an_option(tmp_path: Path) -> None:
    base = Kind(6, False, False).create(tmp_path)
    table = HoodieTable.open(base)
    for start in (0, 10):
        table.upsert(
            [row(i) for i in range(start, start + 10)], options={**QUICK, "hoodie.parquet.small.file.limit": 0}
        )
    assert len(table.file_slices()) == 2
    assert len(contents(base)) == 20
