"""Base files: what repeats stays coded, what is elsewhere is fetched ahead.

Columns of few values: read as codes, they hold what they hold when read plainly.
"""

from __future__ import annotations

import gc
import io
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import CorruptFileError, HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.parquet.parquet_file import ParquetFile
from hoodie_py.reader.base.base_file import BaseFileReader, Decoder, find_coded_columns, to_plain_array, to_plain_type
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import BaseFile

NAME = "f1-0_1-0-1_20260101000000000.parquet"
META = pa.schema([("_hoodie_commit_time", pa.string()), ("_hoodie_record_key", pa.string()), ("n", pa.int64())])
ROWS = 5000


def stored(root: Path, times: Sequence[str | None], row_group_size: int | None = None) -> BaseFileReader:
    table = pa.table(
        {
            "_hoodie_commit_time": pa.array(times, pa.string()),
            "_hoodie_record_key": [f"k{i}" for i in range(len(times))],
            "n": range(len(times)),
        },
        META,
    )
    pq.write_table(table, root / NAME, row_group_size=row_group_size)
    return BaseFileReader(TableFiles.open(str(root)), base_file(root))


def base_file(root: Path) -> BaseFile:
    return BaseFile(NAME, (root / NAME).stat().st_size, "20260101000000000", "f1-0")


@pytest.mark.parametrize(
    "times",
    [
        ["1"] * ROWS,
        ["1"] * (ROWS - 1) + ["2"],
        ["1"] * (ROWS - 1) + [None],
        [None] * ROWS,
        [str(i) for i in range(ROWS)],
    ],
    ids=["same", "two", "null", "nulls", "all differ"],
)
@pytest.mark.parametrize("row_group_size", [None, 700])
def test_repeated_meta_columns_read_the_same_coded_and_plain(
    tmp_path: Path, times: list[str | None], row_group_size: int | None
) -> None:
    base = stored(tmp_path, times, row_group_size)
    plain = pa.Table.from_batches(base.read_batches(META, 999))
    assert plain.column("_hoodie_commit_time").to_pylist() == times
    decoder = Decoder()
    found: list[str | None] = []
    for batch in base.read_batches(META, 999, coded=META.names):
        column = batch.column("_hoodie_commit_time")
        strings = decoder.decode(META.field(0), column)
        assert strings.type == pa.string()
        found += strings.to_pylist()
    assert found == times


def test_a_column_of_one_value_is_written_out_once(tmp_path: Path) -> None:
    base = stored(tmp_path, ["1"] * ROWS)
    decoder = Decoder()
    columns = [batch.column("_hoodie_commit_time") for batch in base.read_batches(META, 1000, coded=META.names)]
    assert all(pa.types.is_dictionary(column.type) for column in columns)
    buffers = {decoder.decode(META.field(0), column).buffers()[2].address for column in columns}
    assert len(buffers) == 1
    field = pa.field("p", pa.string())
    assert decoder.repeat_value(field, "x", 3).to_pylist() == ["x"] * 3
    assert decoder.repeat_value(field, "x", 5).to_pylist() == ["x"] * 5
    assert decoder.repeat_value(pa.field("q", pa.int32()), None, 2).to_pylist() == [None, None]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(CorruptFileError) as caught:
        BaseFileReader(TableFiles.open(str(tmp_path)), base_file(tmp_path))
    assert caught.value.where["path"] == NAME


class Elsewhere:
    """A table's files as if they were in a remote store, with a gate before some reads."""

    def __init__(self, files: TableFiles, before: Callable[[str, Sequence[tuple[int, int]]], None]) -> None:
        self._files = files
        self._before = before

    def local_path(self, _: str) -> None:
        return None

    def read(self, path: str) -> bytes:
        self._before(path, [])
        return self._files.read(path)

    def open_file(self, path: str, size: int | None) -> Any:
        from hoodie_storage.ranged_file import RangedFile

        return RangedFile(self, path, size or self._files.stat(path).size)  # type: ignore[arg-type]

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        return self.read_ranges(path, [(start, stop)])[0]

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if ranges:
            self._before(path, ranges)
        data = io.BytesIO(self._files.read(path)).getbuffer()
        return [bytes(data[start:stop]) for start, stop in ranges]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def test_the_next_row_group_is_fetched_while_one_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hoodie_py.reader.base.base_file as module

    monkeypatch.setattr(module, "_TAIL", 16384)
    stored(tmp_path, [str(i) for i in range(ROWS)], 1000)
    asked: list[int] = []
    came = threading.Semaphore(0)

    def before(_: str, ranges: Sequence[tuple[int, int]]) -> None:
        asked.append(ranges[0][0])
        came.release()

    base = BaseFileReader(Elsewhere(TableFiles.open(str(tmp_path)), before), base_file(tmp_path))  # type: ignore[arg-type]
    asked.clear()
    came = threading.Semaphore(0)
    batches = base.read_batches(META, 100)
    rows = next(batches).column("n").to_pylist()
    for _ in range(2):  # the first row group, and the second before anything more is read of the first
        assert came.acquire(timeout=20)
    assert asked == sorted(asked)
    for batch in batches:
        rows += batch.column("n").to_pylist()
    assert rows == list(range(ROWS))
    assert len(asked) == 5


def test_the_base_file_is_opened_while_the_log_is_read(corpus: Callable[[str], Path]) -> None:
    table = HoodieTable.open(corpus("event_time_updates_mor_v9"))
    (file_slice, *_) = [each for each in table.file_slices() if each.base_file is not None and each.log_files]
    want = pa.Table.from_batches(FileGroupReader(file_slice, table).to_batches())
    tail_asked = threading.Event()

    def before(path: str, _: Sequence[tuple[int, int]]) -> None:
        if path.endswith(".parquet"):
            tail_asked.set()
        else:
            assert tail_asked.wait(20), "the log was read first"

    from dataclasses import replace

    info = replace(table.read_info(file_slice), files=Elsewhere(table.files, before))
    assert pa.Table.from_batches(FileGroupReader(file_slice, info).to_batches()).equals(want)
    assert tail_asked.is_set()


def test_a_footer_goes_with_its_reader(tmp_path: Path) -> None:
    """Footers have bloom filters of a megabyte, which must not wait for the collection of garbage."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        reader = stored(tmp_path, ["t1"] * ROWS)
        assert sum(batch.num_rows for batch in reader.read_batches(META, 1000)) == ROWS
        del reader
        gc.collect()
        assert not [each for each in gc.garbage if isinstance(each, pq.FileMetaData)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.mark.parametrize("group_rows", [ROWS, 2000])
def test_row_groups_of_one_batch_are_read_alike_by_parts_of_their_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int
) -> None:
    texts = {f"s{i}": pa.array([f"{i}-{row % 3}" if row % 5 else None for row in range(ROWS)]) for i in range(12)}
    nested = {"l": pa.array([[row, None] if row % 4 else None for row in range(ROWS)]), "n": pa.array(range(ROWS))}
    table = pa.table({**texts, **nested})
    pq.write_table(table, tmp_path / NAME, row_group_size=group_rows)
    base = BaseFileReader(TableFiles.open(str(tmp_path)), base_file(tmp_path))
    schema = pa.schema(list(table.schema)[::-1])
    read: list[int] = []
    real = ParquetFile.read_row_group
    monkeypatch.setattr(ParquetFile, "read_row_group", lambda self, at, names: read.append(at) or real(self, at, names))
    streamed = list(base.read_batches(schema, ROWS))
    monkeypatch.setattr("hoodie_py.reader.base.base_file._MANY_BYTES", 0)
    assert not read
    assert list(base.read_batches(schema, ROWS)) == streamed
    assert read == list(range(-(-ROWS // group_rows)))
    assert pa.Table.from_batches(streamed) == table.select(schema.names)
    assert len(list(base.read_batches(schema, 100))) == ROWS // 100


COUNTRIES = st.sampled_from([None, "", "Österreich", "Česko", "a fairly long name of some place or other"])
NAMES = st.sampled_from(["", "x", "a key that is longer than the others"])
SCHEMA = pa.schema(
    [
        ("flat", pa.string()),
        ("list", pa.list_(pa.string())),
        ("lists", pa.list_(pa.list_(pa.string()))),
        ("map", pa.map_(pa.string(), pa.string())),
        ("struct", pa.struct([("n", pa.int32()), ("text", pa.string()), ("texts", pa.list_(pa.string()))])),
        ("structs", pa.list_(pa.struct([("text", pa.string())]))),
        ("number", pa.int64()),
    ]
)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


FEW_ROWS = st.fixed_dictionaries(
    {
        "flat": COUNTRIES,
        "list": maybe(st.lists(COUNTRIES, max_size=3)),
        "lists": maybe(st.lists(maybe(st.lists(COUNTRIES, max_size=2)), max_size=2)),
        "map": maybe(st.lists(st.tuples(NAMES, COUNTRIES), max_size=3)),
        "struct": maybe(
            st.fixed_dictionaries({"n": st.none(), "text": COUNTRIES, "texts": maybe(st.lists(COUNTRIES, max_size=2))})
        ),
        "structs": maybe(st.lists(maybe(st.fixed_dictionaries({"text": COUNTRIES})), max_size=2)),
        "number": st.integers(0, 5),
    }
)


def written(table: pa.Table, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file


def read_coded(file: io.BytesIO, columns: Sequence[int], rows: int) -> list[pa.RecordBatch]:
    return list(pq.ParquetFile(file, read_dictionary=list(columns)).iter_batches(rows))


@given(st.lists(FEW_ROWS, min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 3))
def test_every_shape_is_written_out_as_it_was(rows: list[dict[str, Any]], at_once: int, skipped: int) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    batches = read_coded(written(table), range(10), at_once)
    assert pa.types.is_dictionary(batches[0].schema.field("flat").type)
    found = []
    for batch in batches:
        part = batch.slice(skipped)
        columns = []
        for column, field in zip(part.columns, SCHEMA, strict=True):
            assert to_plain_type(column.type).equals(field.type)
            columns.append(to_plain_array(column, field.type))
            columns[-1].validate(full=True)
        found += pa.RecordBatch.from_arrays(columns, schema=SCHEMA).to_pylist()
    expected = table.to_pylist()
    kept = [row for start in range(0, len(rows), at_once) for row in expected[start : start + at_once][skipped:]]
    assert found == kept


def test_strings_that_repeat_are_chosen_and_no_others() -> None:
    table = pa.table(
        {
            "city": ["Wien", "Graz", "Linz", None] * 500,
            "id": [f"id-{i}" for i in range(2000)],
            "n": [1, 2] * 1000,
            "tags": [["a", "b"], []] * 1000,
        }
    )
    assert find_coded_columns(pq.read_metadata(written(table))) == [0, 3]
    assert find_coded_columns(pq.read_metadata(written(table, use_dictionary=False))) == []
    assert find_coded_columns(pq.read_metadata(written(table.slice(0, 0)))) == []


@pytest.mark.parametrize("last", [["Wien"] * 1000, [f"{i}" * 9 for i in range(1000)]], ids=["alike", "another"])
def test_row_groups_of_other_kinds(last: list[str]) -> None:
    cities = ["Wien"] * 1000 + [f"{i}" * 9 for i in range(1000)] + last
    file = written(pa.table({"city": cities}), row_group_size=1000)
    assert find_coded_columns(pq.read_metadata(file)) == ([0] if last[0] == "Wien" else [])
    batches = read_coded(file, [0], 300)
    assert [text for batch in batches for text in to_plain_array(batch.column(0), pa.string()).to_pylist()] == cities


def test_a_column_of_one_value_is_shared() -> None:
    decoder, field = Decoder(), pa.field("p", pa.string())
    one = pa.array(["x"] * 5).dictionary_encode()
    first, second = decoder.decode(field, one), decoder.decode(field, one.slice(1, 3))
    assert first.to_pylist() == ["x"] * 5
    assert second.to_pylist() == ["x"] * 3
    assert first.buffers()[2].address == second.buffers()[2].address
    assert decoder.decode(field, pa.array(["x", None, "x"]).dictionary_encode()).to_pylist() == ["x", None, "x"]
    assert decoder.decode(field, pa.array(["y"]).dictionary_encode()).to_pylist() == ["y"]
