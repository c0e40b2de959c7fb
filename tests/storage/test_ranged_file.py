"""A RangedFile is a file, and a thrifty one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_storage import RangedFile, open_store


def kept_bytes(file: RangedFile) -> int:
    return sum(map(len, file._kept)) + len(file._ahead[1])


CONTENT = np.random.default_rng(7).bytes(500_000)
SIZE = len(CONTENT)


class Counting:
    """A store of one file that counts requests and bytes."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.requests: list[tuple[int, int]] = []

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        return self.read_ranges(path, [(start, stop)])[0]

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        assert path == "f"
        assert all(0 <= start < stop <= len(self.content) for start, stop in ranges)
        self.requests.extend(ranges)
        return [self.content[start:stop] for start, stop in ranges]


positions = st.one_of(st.integers(0, SIZE + 50), st.integers(SIZE - 100, SIZE + 10), st.integers(0, 200))
steps = st.one_of(
    st.tuples(st.just("seek"), positions),
    st.tuples(st.just("read"), st.one_of(st.integers(0, 200_000), st.just(-1))),
    st.tuples(st.just("readinto"), st.integers(0, 1000)),
    st.tuples(st.just("back"), st.integers(0, 1000)),
    st.tuples(st.just("prefetch"), st.lists(st.tuples(positions, st.integers(0, 90_000)), max_size=4)),
    st.tuples(st.just("drop"), st.none()),
)


@given(st.lists(steps, max_size=15))
def test_behaves_like_a_file_in_memory(script: list[tuple[str, object]]) -> None:
    ours, theirs = RangedFile(Counting(), "f", SIZE), io.BytesIO(CONTENT)
    for what, argument in script:
        if what == "prefetch":
            ours.prefetch([(start, start + length) for start, length in argument])  # type: ignore[attr-defined]
        elif what == "drop":
            ours.drop()
        elif what == "readinto":
            here, there = bytearray(argument), bytearray(argument)  # type: ignore[call-overload]
            assert ours.readinto(here) == theirs.readinto(there)
            assert here == there
        elif what == "back":
            offset = max(-argument, -theirs.tell())  # type: ignore[operator]
            assert ours.seek(offset, io.SEEK_CUR) == theirs.seek(offset, io.SEEK_CUR)
        else:
            assert getattr(ours, what)(argument) == getattr(theirs, what)(argument)
        assert ours.tell() == theirs.tell()


@given(st.lists(st.tuples(st.integers(0, SIZE), st.integers(1, 150_000)), max_size=6))
def test_prefetched_bytes_need_no_request_and_are_fetched_once(ranges: list[tuple[int, int]]) -> None:
    store = Counting()
    file = RangedFile(store, "f", SIZE)
    for start, length in ranges:
        file.prefetch([(start, start + length)])
    fetched = sorted(store.requests)
    assert all(before[1] <= after[0] for before, after in pairwise(fetched))
    assert kept_bytes(file) == sum(stop - start for start, stop in fetched)
    store.requests.clear()
    for start, length in ranges:
        file.seek(start)
        assert file.read(length) == CONTENT[start : start + length]
    assert store.requests == []


def test_drop_forgets() -> None:
    store = Counting()
    file = RangedFile(store, "f", SIZE)
    file.prefetch([(0, 1000)])
    file.drop()
    assert kept_bytes(file) == 0
    file.read(10)
    assert len(store.requests) == 2


def test_small_reads_in_a_row_share_requests() -> None:
    store = Counting()
    file = RangedFile(store, "f", SIZE)
    while file.read(1000):
        pass
    assert len(store.requests) <= SIZE // 65_536 + 1


def test_large_reads_fetch_no_more_than_asked() -> None:
    store = Counting()
    file = RangedFile(store, "f", SIZE)
    file.seek(100)
    file.read(200_000)
    assert store.requests == [(100, 200_100)]


def test_is_a_python_file() -> None:
    file = RangedFile(Counting(b"one\ntwo\n"), "f", 8)
    assert (file.readable(), file.seekable(), file.writable()) == (True, True, False)
    assert list(io.BufferedReader(file)) == [b"one\n", b"two\n"]
    assert file.closed
    with pytest.raises(ValueError, match="closed"):
        file.read()
    with pytest.raises(ValueError, match="before the start"):
        RangedFile(Counting(), "f", SIZE).seek(-1)


def table(rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table({f"column{number}": random.integers(0, 2**60, rows) for number in range(20)})


def chunks(meta: pq.FileMetaData, group: int, columns: list[int]) -> list[tuple[int, int]]:
    found = []
    for number in columns:
        chunk = meta.row_group(group).column(number)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        found.append((start, start + chunk.total_compressed_size))
    return found


def test_parquet_through_it_makes_few_requests() -> None:
    whole = table(40_000)
    sink = io.BytesIO()
    pq.write_table(whole, sink, row_group_size=20_000)
    store = Counting(sink.getvalue())
    size = len(store.content)
    file = RangedFile(store, "f", size)
    file.prefetch([(max(0, size - 1024 * 1024), size)])
    parquet = pq.ParquetFile(pa.PythonFile(file, mode="r"))
    assert len(store.requests) == 1
    meta = parquet.metadata
    columns = [2, 3, 9]
    for group in range(2):
        file.prefetch(chunks(meta, group, columns))
        read = parquet.read_row_group(group, columns=[f"column{number}" for number in columns])
        assert read.equals(whole.slice(group * 20_000, 20_000).select([f"column{number}" for number in columns]))
        file.drop()
    assert len(store.requests) <= 1 + 2 * 2
    assert sum(stop - start for start, stop in store.requests) < size // 2


def test_pyarrow_takes_the_bytes_without_copying(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow calls read_buffer where there is one; read() would copy."""
    whole = table(5_000)
    sink = io.BytesIO()
    pq.write_table(whole, sink)
    file = RangedFile(Counting(sink.getvalue()), "f", len(sink.getvalue()))
    copies: list[int | None] = []

    def read(self: RangedFile, size: int | None = -1) -> bytes:
        copies.append(size)
        return bytes(self.read_buffer(size))

    monkeypatch.setattr(RangedFile, "read", read)
    assert pq.ParquetFile(pa.PythonFile(file, mode="r")).read().equals(whole)
    assert copies == []


def test_a_stored_parquet_file(tmp_path: Path) -> None:
    whole = table(1_000)
    pq.write_table(whole, tmp_path / "f.parquet")
    with open_store(tmp_path).open("f.parquet") as file:
        assert pq.read_table(file).equals(whole)
