"""ORC base files: all types, stripes, time zones, near and far."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from hoodie_py import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.errors import FileMissingError
from hoodie_py.files import TableFiles
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.base.mapped_file import CommitsView
from hoodie_py.reader.base.orc_file import OrcFileReader, make_instants, to_instant_type
from hoodie_py.reader.file_slice import BaseFile, InstantRange
from tests.reader.base.far_files import FarFiles

NAME = "f1-0_1-0-1_20260101000000000.orc"
UTC = dt.UTC
DEEP = pa.list_(pa.list_(pa.struct({"t": pa.timestamp("ns")})))


def make_table(rows: int = 5) -> pa.Table:
    def some(make: Any) -> list[Any]:
        return [None if number % 3 == 1 else make(number) for number in range(rows)]

    def at(number: int) -> dt.datetime:
        return dt.datetime(1950 + number % 90, 7, 1, 1, 2, 3, 456789)

    return pa.table({
        "_hoodie_commit_time": [str(number % 2 + 1) for number in range(rows)],
        "b": pa.array(some(lambda n: n % 2 == 0), pa.bool_()),
        "i8": pa.array(some(lambda n: n % 100), pa.int8()),
        "i16": pa.array(some(lambda n: n % 100), pa.int16()),
        "i": pa.array(some(lambda n: -n), pa.int32()),
        "l": pa.array(some(lambda n: n << 40), pa.int64()),
        "f": pa.array(some(lambda n: n / 4), pa.float32()),
        "d": pa.array(some(lambda n: n / 3), pa.float64()),
        "s": pa.array(some(lambda n: f"text {n} é\U0001f600"), pa.string()),
        "bin": pa.array(some(lambda n: bytes([n % 256, 0])), pa.binary()),
        "day": pa.array(some(lambda n: dt.date(1960, 1, 1) + dt.timedelta(n * 9)), pa.date32()),
        "at": pa.array(some(at), pa.timestamp("ns")),
        "dec": pa.array(some(lambda n: Decimal(f"-{n}.25")), pa.decimal128(20, 2)),
        "tags": pa.array(some(lambda n: ["a", None, f"t{n}"]), pa.list_(pa.string())),
        "st": pa.array(some(lambda n: {"a": n, "t": at(n)}), pa.struct({"a": pa.int32(), "t": pa.timestamp("ns")})),
        "m": pa.array(some(lambda n: [("k", n), ("l", None)]), pa.map_(pa.string(), pa.int64())),
        "deep": pa.array(some(lambda n: [[{"t": at(n)}, None], []]), DEEP),
        "mt": pa.array(some(lambda n: [("k", at(n))]), pa.map_(pa.string(), pa.timestamp("ns"))),
    })  # fmt: skip


def write(root: Path, table: pa.Table, **options: Any) -> BaseFile:
    orc.write_table(table, str(root / NAME), **options)
    return BaseFile(NAME, (root / NAME).stat().st_size, "20260101000000000", "f1-0")


def open_file(root: Path, base: BaseFile, *, far: bool = False) -> OrcFileReader:
    files: Any = TableFiles.open(str(root))
    reader = open_by_extension(FarFiles(files) if far else files, base)
    assert isinstance(reader, OrcFileReader)
    return reader


def read(reader: OrcFileReader, names: Sequence[str], rows: int = 64, groups: list[int] | None = None) -> pa.Table:
    schema = pa.schema([reader.schema.field(name) for name in names])
    batches = list(reader.read_batches(schema, rows, groups))
    assert all(0 < batch.num_rows <= rows for batch in batches)
    return pa.Table.from_batches(batches, pa.schema([field.with_nullable(True) for field in schema]))


def as_utc(value: Any) -> Any:
    """What must come of a value: times are instants."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=UTC)
    if isinstance(value, list):
        return [as_utc(each) for each in value]
    if isinstance(value, tuple):
        return tuple(as_utc(each) for each in value)
    return {name: as_utc(each) for name, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_all_types_read_as_they_were_written(tmp_path: Path, codec: str, far: bool) -> None:
    table = make_table(500)
    reader = open_file(tmp_path, write(tmp_path, table, compression=codec), far=far)
    assert reader.num_rows == 500
    assert reader.columns == set(table.column_names)
    assert reader.schema.field("i8").type == reader.schema.field("i16").type == pa.int32()
    assert reader.schema.field("at").type == pa.timestamp("us", "UTC")
    found = read(reader, reader.schema.names)
    for name in table.column_names:
        want = [as_utc(value) for value in table.column(name).cast(_micros(table.schema.field(name).type)).to_pylist()]
        assert found.column(name).to_pylist() == want, name
        assert read(reader, [name]).column(name).equals(found.column(name)), name


def _micros(type_: pa.DataType) -> pa.DataType:
    """The type with times in microseconds, which Python has."""
    target = to_instant_type(type_)
    return pa.timestamp("us") if pa.types.is_timestamp(target) else _without_zone(target)


def _without_zone(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us")
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_without_zone(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_without_zone(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _without_zone(type_.item_type))
    return type_


def test_stripes_are_read_one_by_one(tmp_path: Path) -> None:
    table = pa.table({"n": range(60_000), "s": [str(number) * 9 for number in range(60_000)]})
    base = write(tmp_path, table, stripe_size=1 << 16, batch_size=1024)
    reader = open_file(tmp_path, base)
    sizes = list(reader.group_rows)
    assert len(sizes) > 3
    assert sum(sizes) == reader.num_rows == 60_000
    assert read(reader, ["n", "s"], 1000).equals(table)
    assert read(reader, ["n"], 1000, [1, 3]).column("n").to_pylist() == [
        *range(sizes[0], sum(sizes[:2])),
        *range(sum(sizes[:3]), sum(sizes[:4])),
    ]
    assert sum(batch.num_rows for batch in reader.read_batches(pa.schema([]), 700, [0])) == sizes[0]


def test_a_far_read_fetches_the_streams_of_its_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hoodie_py.reader.base.orc_file as module

    monkeypatch.setattr(module, "_TAIL", 2048)
    wide = [random.Random(number).randbytes(900).hex() for number in range(6000)]
    base = write(tmp_path, pa.table({"wide": wide, "n": range(6000)}))
    files = FarFiles(TableFiles.open(str(tmp_path)))
    reader = OrcFileReader(files, base)  # type: ignore[arg-type]
    assert read(reader, ["n"], 4096).column("n").to_pylist() == list(range(6000))
    assert files.fetched < base.size / 4


def test_only_rows_of_some_commits(tmp_path: Path) -> None:
    reader = CommitsView(open_file(tmp_path, write(tmp_path, make_table(10))), InstantRange("2", "2"))
    schema = pa.schema({"i": pa.int32()})
    found = pa.Table.from_batches(list(reader.read_batches(schema, 4)), schema)
    assert found.column("i").to_pylist() == [None, -3, -5, None, -9]


def test_what_a_clock_showed_becomes_an_instant() -> None:
    """In winter and summer, before and after the epoch; of the hour that comes twice, the first."""
    shown = ["1969-01-01 00:00:00.000001999", "2024-07-01 12:00", "2024-11-03 01:30", "2024-03-10 02:30", None]
    array = pa.array([None if text is None else text for text in shown]).cast(pa.timestamp("ns"))
    found = make_instants("America/Los_Angeles")(array).cast(pa.string()).to_pylist()
    assert found == [
        "1969-01-01 08:00:00.000001Z", "2024-07-01 19:00:00.000000Z", "2024-11-03 08:30:00.000000Z",
        "2024-03-10 10:00:00.000000Z", None,
    ]  # fmt: skip


def test_fractions_that_hudi_lost_are_refused() -> None:
    nanos = -(10**9)
    array = pa.array([0, nanos + 456_000, None, -3 * nanos, 2 * nanos], pa.int64()).cast(pa.timestamp("ns"))
    make_instants("UTC", by_hudi=True)(array)
    lost = pa.array([{"t": [0, nanos - 456_000]}], pa.struct({"t": pa.list_(pa.timestamp("ns"))}))
    assert make_instants("UTC")(lost).to_pylist()[0]["t"][1].microsecond == 999_544
    with pytest.raises(UnsupportedFeatureError, match="before 1970"):
        make_instants("UTC", by_hudi=True)(lost)


def test_nested_times_of_a_slice() -> None:
    type_ = pa.map_(pa.string(), pa.list_(pa.struct({"t": pa.timestamp("ns"), "n": pa.int8()})))
    rows = [None, [("a", None)], [("b", [{"t": 0, "n": 1}, None])], [("c", [{"t": None, "n": 2}])]]
    array = pa.array(rows, type_).slice(1, 3)
    found = make_instants("Asia/Tokyo")(array)
    found.validate(full=True)
    assert found.type == to_instant_type(type_)
    early = dt.datetime(1969, 12, 31, 15, tzinfo=UTC)
    assert found.to_pylist() == [[("a", None)], [("b", [{"t": early, "n": 1}, None])], [("c", [{"t": None, "n": 2}])]]


def test_far_times_are_not_supported(tmp_path: Path) -> None:
    base = write(tmp_path, pa.table({"t": pa.array([dt.datetime(2261, 1, 1)], pa.timestamp("ns"))}))
    reader = open_file(tmp_path, base)
    assert read(reader, ["t"]).num_rows == 1
    error = pa.ArrowInvalid("ORC timestamp (12004724759s + 476000ns) is out of range for nanosecond resolution")
    with pytest.raises(UnsupportedFeatureError, match="2262"), reader._name_damage():
        raise error


def test_a_column_of_a_foreign_type_is_named(tmp_path: Path) -> None:
    reader = open_file(tmp_path, write(tmp_path, make_table(3)))
    with pytest.raises(UnsupportedFeatureError, match="tags"):
        list(reader.read_batches(pa.schema({"tags": pa.int64()}), 10))


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(FileMissingError):
        open_file(tmp_path, BaseFile(NAME, 100, "1", "f"))
    (tmp_path / NAME).write_bytes(b"PAR1" * 100)
    with pytest.raises(CorruptFileError, match=NAME):
        open_file(tmp_path, BaseFile(NAME, 400, "1", "f"))


def test_truncations_and_flipped_bits(tmp_path: Path) -> None:
    """Every truncation is refused; a flipped bit is an error with a place, or another value: ORC has no checksums."""
    write(tmp_path, make_table(6).select(["i", "s", "tags", "st", "dec", "at"]), compression="zlib")
    data = (tmp_path / NAME).read_bytes()
    for length in range(len(data)):
        (tmp_path / NAME).write_bytes(data[:length])
        with pytest.raises(HoodieError, match=NAME):
            open_file(tmp_path, BaseFile(NAME, length, "1", "f"))
    errors = 0
    for at in range(0, len(data) * 8, 5):
        damaged = bytearray(data)
        damaged[at // 8] ^= 1 << at % 8
        (tmp_path / NAME).write_bytes(damaged)
        try:
            reader = open_file(tmp_path, BaseFile(NAME, len(data), "1", "f"))
            read(reader, reader.schema.names)
        except HoodieError as error:
            errors += 1 if NAME in str(error) else -len(data)
    assert errors > len(data) / 8
