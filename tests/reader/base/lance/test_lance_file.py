"""Lance base files: all types and formats, any projection, near and far, and the process that decodes them."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.errors import FileMissingError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.base.lance import process
from hoodie_py.reader.base.lance.lance_file import LanceFileReader
from hoodie_py.reader.base.mapped_file import CommitsView
from hoodie_py.reader.file_slice import BaseFile, InstantRange
from tests.reader.base.far_files import FarFiles

NAME = "f1-0_1-0-1_20260101000000000.lance"
VERSIONS = ("2.0", "2.1", "2.2")
UTC = dt.UTC
PAIR = pa.struct({"a": pa.int32(), "b": pa.string()})
DEEP = pa.list_(pa.struct({"x": pa.int64(), "y": pa.list_(pa.float64())}))


def make_table(rows: int = 5) -> pa.Table:
    def some(make: Any) -> list[Any]:
        return [None if number % 3 == 1 else make(number) for number in range(rows)]

    return pa.table({
        "_hoodie_commit_time": [str(number % 2 + 1) for number in range(rows)],
        "b": pa.array(some(lambda n: n % 2 == 0), pa.bool_()),
        "i8": pa.array(some(lambda n: n % 100), pa.int8()),
        "i": pa.array(some(lambda n: -n), pa.int32()),
        "l": pa.array(some(lambda n: n << 40), pa.int64()),
        "f": pa.array(some(lambda n: n / 4), pa.float32()),
        "d": pa.array(some(lambda n: n / 3), pa.float64()),
        "s": pa.array(some(lambda n: f"text {n} é\U0001f600"), pa.string()),
        "ls": pa.array(some(lambda n: "x" * n), pa.large_string()),
        "bin": pa.array(some(lambda n: bytes([n % 256, 0])), pa.binary()),
        "day": pa.array(some(lambda n: dt.date(1960, 1, 1) + dt.timedelta(n * 99)), pa.date32()),
        "at": pa.array(some(lambda n: dt.datetime(1950, 1, 1, 1, 2, 3, 4 + n, tzinfo=UTC)), pa.timestamp("us", "UTC")),
        "ntz": pa.array(some(lambda n: dt.datetime(2050, 1, 1, 1, 2, 3, 4 + n)), pa.timestamp("us")),
        "dec": pa.array(some(lambda n: Decimal(f"-{n}.25")), pa.decimal128(20, 2)),
        "tags": pa.array(some(lambda n: ["a", None, f"t{n}"]), pa.list_(pa.string())),
        "st": pa.array([{"a": n, "b": None if n % 2 else "x"} for n in range(rows)], PAIR),
        "deep": pa.array(some(lambda n: [{"x": n, "y": [1.5, None]}, {"x": None, "y": []}]), DEEP),
        "vec": pa.array(some(lambda n: [n, n + 0.5]), pa.list_(pa.float32(), 2)),
    })  # fmt: skip


def write(root: Path, table: pa.Table, version: str = "2.0", metadata: dict[str, str] | None = None) -> BaseFile:
    from lance.file import LanceFileWriter

    with LanceFileWriter(
        str(root / NAME), table.schema, version=version, data_cache_bytes=1, max_page_bytes=4096
    ) as to:
        for batch in table.to_batches(max_chunksize=700):
            to.write_batch(batch)
        for key, value in (metadata or {}).items():
            to.add_schema_metadata(key, value)
    return BaseFile(NAME, (root / NAME).stat().st_size, "20260101000000000", "f1-0")


def open_file(root: Path, base: BaseFile, *, far: bool = False) -> LanceFileReader:
    files: Any = TableFiles.open(str(root))
    reader = open_by_extension(FarFiles(files) if far else files, base, directory=str(root))
    assert isinstance(reader, LanceFileReader)
    return reader


def read(reader: LanceFileReader, names: Sequence[str], rows: int = 64, groups: list[int] | None = None) -> pa.Table:
    schema = pa.schema([reader.schema.field(name) for name in names])
    batches = list(reader.read_batches(schema, rows, groups))
    assert all(0 < batch.num_rows <= rows for batch in batches)
    return pa.Table.from_batches(batches, pa.schema([field.with_nullable(True) for field in schema]))


@pytest.fixture(autouse=True)
def no_idle_processes() -> Iterator[None]:
    yield
    while process._idle:
        process._idle.pop().close()


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("version", VERSIONS)
def test_all_types_read_as_they_were_written(tmp_path: Path, version: str, far: bool) -> None:
    table = make_table(2000)
    base = write(tmp_path, table, version)
    reader = open_file(tmp_path, base, far=far)
    assert reader.num_rows == 2000
    assert reader.columns == set(table.column_names)
    assert reader.schema.field("i8").type == pa.int32()
    assert reader.schema.field("ls").type == pa.string()
    found = read(reader, reader.schema.names)
    for name in table.column_names:
        assert found.column(name).to_pylist() == table.column(name).to_pylist(), name


@pytest.mark.parametrize("version", VERSIONS)
def test_a_far_file_reads_the_same_whichever_columns_are_fetched(tmp_path: Path, version: str) -> None:
    """The copy of the file has zeros where the pages of other columns are, which must never be decoded."""
    table = make_table(3000)
    base = write(tmp_path, table, version)
    near = open_file(tmp_path, base)
    whole = read(near, near.schema.names, 4096)
    for name in table.column_names:
        far = open_file(tmp_path, base, far=True)
        far._tail = far._tail[-(base.size - far._layout.start) :]  # as of a file whose tail has no pages
        assert far._layout.find_ranges([name]), name
        assert read(far, [name], 4096).column(name).equals(whole.column(name)), name
    chosen = random.Random(5).sample(table.column_names, 5)
    assert read(open_file(tmp_path, base, far=True), chosen, 4096).equals(whole.select(chosen))


def test_a_far_read_fetches_the_pages_of_its_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hoodie_py.reader.base.lance.lance_file as copies
    import hoodie_py.reader.base.lance.lance_file as module

    monkeypatch.setattr(module, "_TAIL", 1024)
    monkeypatch.setattr(copies, "_GAP", 0)
    base = write(tmp_path, pa.table({"wide": ["x" * 500] * 4000, "n": range(4000)}), "2.1")
    files = FarFiles(TableFiles.open(str(tmp_path)))
    reader = LanceFileReader(files, base, directory=str(tmp_path))  # type: ignore[arg-type]
    files.fetched = 0
    assert read(reader, ["n"], 4096).column("n").to_pylist() == list(range(4000))
    assert 0 < files.fetched < 4000 * 8 + 4096
    assert not list(tmp_path.glob("hoodie_py-spill-*"))


@pytest.mark.parametrize("version", VERSIONS)
def test_nested_columns_may_come_first(tmp_path: Path, version: str) -> None:
    table = make_table(9).select(["st", "deep", "i"])
    base = write(tmp_path, table, version)
    for far in (False, True):
        reader = open_file(tmp_path, base, far=far)
        assert reader.columns == {"st", "deep", "i"}
        assert reader._layout.find_ranges(["st"])
        assert read(reader, ["i", "st"]).to_pylist() == table.select(["i", "st"]).to_pylist()


@pytest.mark.parametrize("version", VERSIONS[:2])
def test_far_blobs_which_lie_outside_of_the_pages(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hoodie_py.reader.base.lance.lance_file as module

    monkeypatch.setattr(module, "_TAIL", 1024)
    data = [None if number == 7 else random.Random(number).randbytes(20_000) for number in range(40)]
    field = pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    blobs = pa.StructArray.from_arrays(
        [pa.array(data, pa.large_binary()), pa.array(range(40))], fields=[field, pa.field("n", pa.int64())]
    )
    base = write(tmp_path, pa.Table.from_arrays([blobs], schema=pa.schema([pa.field("b", blobs.type)])), version)
    for far in (False, True):
        found = read(open_file(tmp_path, base, far=far), ["b"]).column("b").to_pylist()
        assert [row["data"] for row in found] == data


def test_batches_groups_and_reads_without_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hoodie_py.reader.base.lance.lance_file as module

    monkeypatch.setattr(module, "_GROUP_ROWS", 300)
    base = write(tmp_path, pa.table({"n": range(1000)}))
    reader = open_file(tmp_path, base)
    assert list(reader.group_rows) == [300, 300, 300, 100]
    assert read(reader, ["n"], 7).column("n").to_pylist() == list(range(1000))
    assert read(reader, ["n"], 64, [0, 2, 3]).column("n").to_pylist() == [*range(300), *range(600, 1000)]
    assert [batch.num_rows for batch in reader.read_batches(pa.schema([]), 400, [1, 2])] == [400, 200]
    absent = list(reader.read_batches(pa.schema({"absent": pa.string()}), 1000))
    assert absent[0].column("absent").null_count == 1000


def test_a_file_without_rows(tmp_path: Path) -> None:
    reader = open_file(tmp_path, write(tmp_path, make_table(0)))
    assert reader.num_rows == 0
    assert list(reader.group_rows) == []
    assert not list(reader.read_batches(reader.schema, 10))


def test_only_rows_of_some_commits(tmp_path: Path) -> None:
    base = write(tmp_path, make_table(10))
    reader = CommitsView(open_file(tmp_path, base), InstantRange("2", "2"))
    schema = pa.schema({"i": pa.int32()})
    found = pa.Table.from_batches(list(reader.read_batches(schema, 4)), schema)
    assert found.column("i").to_pylist() == [None, -3, -5, None, -9]


def test_key_facts_are_those_of_hudi(tmp_path: Path) -> None:
    base = write(tmp_path, make_table(3), metadata={"hoodie_min_record_key": "a", "hoodie_max_record_key": "z"})
    assert dict(open_file(tmp_path, base).key_facts) == {b"hoodie_min_record_key": b"a", b"hoodie_max_record_key": b"z"}


def test_a_column_of_a_foreign_type_is_named(tmp_path: Path) -> None:
    reader = open_file(tmp_path, write(tmp_path, make_table(3)))
    with pytest.raises(UnsupportedFeatureError, match=r"tags.*\.lance|\.lance.*tags"):
        list(reader.read_batches(pa.schema({"tags": pa.int64()}), 10))


def test_a_read_that_ends_early_leaves_its_process_for_the_next(tmp_path: Path) -> None:
    reader = open_file(tmp_path, write(tmp_path, pa.table({"n": range(1000)})))
    schema = pa.schema({"n": pa.int64()})
    batches = reader.read_batches(schema, 10)
    assert next(batches).column("n")[0].as_py() == 0
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    (idle,) = process._idle
    assert read(reader, ["n"]).column("n").to_pylist() == list(range(1000))
    assert process._idle == [idle]


def test_a_process_that_dies_is_an_error_and_the_next_read_has_another(tmp_path: Path) -> None:
    reader = open_file(tmp_path, write(tmp_path, pa.table({"n": range(1000)})))
    batches = reader.read_batches(pa.schema({"n": pa.int64()}), 10)
    next(batches)
    child = int(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()[-1])
    os.kill(child, signal.SIGABRT)
    with pytest.raises(CorruptFileError, match=rf"SIGABRT.*{NAME}"):
        list(batches)
    assert read(reader, ["n"]).column("n").to_pylist() == list(range(1000))


def test_forked_processes_do_not_share_one(tmp_path: Path) -> None:
    reader = open_file(tmp_path, write(tmp_path, pa.table({"n": range(1000)})))
    assert len(read(reader, ["n"])) == 1000
    assert process._idle
    with multiprocessing.get_context("fork").Pool(2) as pool:
        asked = [pool.apply_async(_sum, (str(tmp_path), reader._size)) for _ in range(4)]
        assert [each.get(60) for each in asked] == [sum(range(1000))] * 4
    assert sum(read(reader, ["n"]).column("n").to_pylist()) == sum(range(1000))


def _sum(root: str, size: int) -> int:
    reader = LanceFileReader(TableFiles.open(root), BaseFile(NAME, size, "1", "f"))
    return sum(read(reader, ["n"]).column("n").to_pylist())


def test_without_the_library_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write(tmp_path, make_table(3))
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(UnsupportedFeatureError, match=r"pip install 'hoodie_py\[lance\]'"):
        open_file(tmp_path, base)


def test_without_an_interpreter_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = open_file(tmp_path, write(tmp_path, make_table(3)))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(StorageError, match=r"No process.*sys\.executable"):
        read(reader, ["i"])


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileMissingError):
        open_file(tmp_path, BaseFile(NAME, 100, "1", "f"))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = _small(tmp_path)
    for length in range(len(data)):
        (tmp_path / NAME).write_bytes(data[:length])
        with pytest.raises(HoodieError, match="lance"):
            open_file(tmp_path, BaseFile(NAME, 0, "1", "f"))


@pytest.mark.slow
def test_a_flipped_bit_is_an_error_or_another_value(tmp_path: Path) -> None:
    """Lance has no checksums, so a value may change; but no flip ends this process, and any error has its type."""
    data = _small(tmp_path)
    dice = random.Random(30)
    errors = 0
    for at in dice.sample(range(len(data) * 8), 150):
        damaged = bytearray(data)
        damaged[at // 8] ^= 1 << at % 8
        (tmp_path / NAME).write_bytes(damaged)
        try:
            reader = open_file(tmp_path, BaseFile(NAME, 0, "1", "f"))
            read(reader, reader.schema.names)
        except HoodieError as error:
            errors += 1 if NAME in str(error) else -len(data)
    assert errors > 10


def _small(root: Path) -> bytes:
    write(root, make_table(6).select(["i", "s", "tags", "st"]), "2.1")
    return (root / NAME).read_bytes()
