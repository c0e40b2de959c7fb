"""Every record goes to exactly one file: its key's group, or a new one of its partition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.files import TableFiles
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.pipeline import assign as routing
from hoodie_py.writer.pipeline.assign import AssignedRecords, assign_files, assign_new_files, list_slices_of
from hoodie_py.writer.records import TaggedRecords, WriteOperation, WriteRecords
from tests.writer.written_tables import FILE_BYTES, Kind, put, records, row, tagged

PATHS = ("", "a", "b/c")
GROUPS = ("g0", "g1", "g2")
BASE = "20250101000000001"


def slices() -> dict[tuple[str, str], FileSlice]:
    base = BaseFile("x", 1, BASE, "g")
    return {(path, group): FileSlice(path, group, BASE, base, ()) for path in PATHS for group in GROUPS[:2]}


def check(routed: AssignedRecords, keys: list[str]) -> None:
    """All placements lie side by side and hold what they say."""
    done = 0
    for each in routed.assignments:
        assert each.start == done
        done = each.stop
        part = routed.get_records(each)
        assert len(part) == len(each) > 0
        assert part.partition_paths is not None
        assert set(part.partition_paths.to_pylist()) == {each.partition_path}
        assert len(routed.get_positions(each)) == len(each)
    assert done == len(routed.records) == len(routed.positions)
    assert sorted(routed.records.keys.to_pylist()) == sorted(keys)


record = st.tuples(st.sampled_from(PATHS), st.sampled_from((None, *GROUPS)), st.booleans(), st.integers(-1, 5))


@settings(deadline=None)
@given(st.lists(record, max_size=40), st.integers(1, 200))
def test_each_record_has_one_place(found: list[tuple[str, str | None, bool, int]], size: int) -> None:
    count = len(found)
    keys = [str(i) for i in range(count)]
    whole = WriteRecords(
        pa.table({"key": pa.array(keys, pa.string())}),
        pa.chunked_array([pa.array(keys, pa.string())]),
        pa.chunked_array([pa.array([each[0] for each in found], pa.string())]),
        pa.chunked_array([pa.array([each[2] for each in found], pa.bool_())]),
    )
    places = TaggedRecords(
        whole,
        pa.array([each[1] for each in found], pa.string()),
        pa.array([BASE if each[1] else None for each in found], pa.string()),
        np.array([each[3] for each in found], np.int64),
    )
    there = slices()
    routed = routing._assign(places, there, size)
    lost = {key for key, each in zip(keys, found, strict=True) if each[2] and (each[0], each[1]) not in there}
    check(routed, [key for key in keys if key not in lost])
    for each in routed.assignments:
        numbers = [int(key) for key in routed.get_records(each).keys.to_pylist()]
        assert numbers == sorted(numbers), "records of one place stay in their order"
        assert [found[i][3] for i in numbers] == routed.get_positions(each).tolist()
        wanted = {found[i][1] for i in numbers}
        if each.file_slice is None and None in wanted:
            assert wanted == {None}
            assert each.updates == each.deletes == 0
        else:
            assert wanted == {each.file_id}
            assert each.file_slice == there.get((each.partition_path, each.file_id))
            assert each.deletes == sum(found[i][2] for i in numbers)
    groups = [each.group for each in routed.assignments]
    assert len(set(groups)) == len(groups)


def test_new_records_are_cut_into_files_of_one_size() -> None:
    given_ = records([{**row(i), "name": "x" * 100} for i in range(1000)])
    routed = assign_new_files(given_, int(given_.rows.nbytes * 0.4 / 5))
    check(routed, given_.keys.to_pylist())
    sizes = [len(each) for each in routed.assignments]
    assert len(sizes) == 6
    assert max(sizes) - min(sizes) <= 1
    assert all(each.inserts == len(each) and each.file_slice is None for each in routed.assignments)


def test_order_and_columns_stay_where_nothing_is_to_be_sorted() -> None:
    given_ = records([row(i) for i in range(0, 10, 2)])
    assert assign_new_files(given_, FILE_BYTES).records is given_


def test_positions_are_those_of_the_newest_base_file(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    put(tmp_path, records([row(i) for i in range(4)]), WriteOperation.INSERT)
    snapshot = open_snapshot(TableFiles.open(tmp_path))
    given_ = records([row(2), row(0), row(6)])
    routed = assign_files(tagged(snapshot, given_), list_slices_of(given_, snapshot), FILE_BYTES)
    known = {each.file_slice is not None: each for each in routed.assignments}
    base = known[True].file_slice.base_file if known[True].file_slice else None
    assert base is not None
    assert known[True].positions_of == base.instant
    assert routed.get_positions(known[True]).tolist() == [1, 0]
    assert (known[True].updates, known[False].inserts) == (2, 1)


def test_records_need_their_partitions() -> None:
    whole = records([row(1)])
    with pytest.raises(ValueError, match="without partition paths"):
        assign_new_files(WriteRecords(whole.rows, whole.keys, None), FILE_BYTES)
