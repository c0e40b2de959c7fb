"""Skeletons of a metadata-only bootstrap, read beside their sources."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, FileMissingError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import META_FIELDS, METADATA_BOOTSTRAP_INSTANT
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.base.bootstrap import BootstrapFileReader, open_base_file
from hoodie_py.reader.file_slice import BaseFile, BlockRules, SourceFile
from hoodie_py.reader.instant_range import InstantRange
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from tests.table.tables import make_table, open_view

KEY, TIME = "_hoodie_record_key", "_hoodie_commit_time"
SCHEMA = pa.schema([*((name, pa.string()) for name in META_FIELDS), ("id", pa.int64()), ("name", pa.string())])


@dataclass(frozen=True)
class Pair:
    """A table with one skeleton, and its source."""

    root: Path
    base: BaseFile

    @property
    def table(self) -> Path:
        return self.root / "table"

    def open(self, instants: InstantRange | None = None, **options: str) -> BaseFileReader:
        files = TableFiles.open(self.table)
        info = ReadInfo(files, open_view(self.table).config, SCHEMA, {}, BlockRules())
        return open_base_file(
            info, self.base, ReadOptions(options={k.replace("__", "."): v for k, v in options.items()}), instants
        )

    def read(self, names: list[str], rows: int = 100, groups: list[int] | None = None) -> list[dict[str, Any]]:
        schema = pa.schema([SCHEMA.field(name) for name in names])
        batches = list(self.open().read_batches(schema, rows, groups))
        assert all(0 < batch.num_rows <= rows and batch.schema.names == names for batch in batches)
        return [row for batch in batches for row in batch.to_pylist()]


def make_pair(
    root: Path, rows: int = 7, skeleton_group: int = 100, source_group: int = 100, source: pa.Table | None = None
) -> Pair:
    meta = {name: [f"{name}-{number}" for number in range(rows)] for name in META_FIELDS}
    meta[TIME] = ["1" if number % 2 else "2" for number in range(rows)]
    data = source if source is not None else make_data(rows)
    make_table(root / "table")
    name = f"a-0_0-0-0_{METADATA_BOOTSTRAP_INSTANT}.parquet"
    pq.write_table(pa.table(meta), root / "table" / name, row_group_size=skeleton_group)
    (root / "source").mkdir(exist_ok=True)
    pq.write_table(data, root / "source" / "x.parquet", row_group_size=source_group)
    size = (root / "source" / "x.parquet").stat().st_size
    place = SourceFile(str(root / "source"), "x.parquet", size)
    return Pair(root, BaseFile(name, (root / "table" / name).stat().st_size, METADATA_BOOTSTRAP_INSTANT, "a-0", place))


def make_data(rows: int) -> pa.Table:
    return pa.table({"id": pa.array(range(rows), pa.int64()), "name": [f"n{number % 3}" for number in range(rows)]})


def test_rows_have_the_columns_of_both_files_in_the_order_asked_for(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, rows=2)
    assert pair.read(["name", KEY, "id"]) == [
        {"name": "n0", KEY: f"{KEY}-0", "id": 0},
        {"name": "n1", KEY: f"{KEY}-1", "id": 1},
    ]
    reader = pair.open()
    assert reader.schema.names == SCHEMA.names
    assert reader.columns == set(SCHEMA.names)


@given(
    rows=st.integers(0, 40), skeleton=st.integers(1, 12), source=st.integers(1, 12), batch=st.integers(1, 15),
    names=st.lists(st.sampled_from(SCHEMA.names), unique=True), data=st.data(),
)  # fmt: skip
def test_any_row_groups_and_columns_pair_row_by_row(
    rows: int, skeleton: int, source: int, batch: int, names: list[str], data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    pair = make_pair(tmp_path_factory.mktemp("pair"), rows, skeleton, source)
    count = pair.open().metadata.num_row_groups
    groups = data.draw(st.none() | st.lists(st.sampled_from(range(count)), unique=True).map(sorted)) if count else None
    kept = [row for row in range(rows) if groups is None or row // source in groups]
    want = [
        {
            name: row if name == "id" else f"n{row % 3}" if name == "name" else ("1" if row % 2 else "2")
            if name == TIME else f"{name}-{row}"
            for name in names
        }
        for row in kept
    ]  # fmt: skip
    assert pair.read(names, batch, groups) == want


def test_each_file_is_read_for_its_own_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str]] = []
    original = BaseFileReader._read_row_group

    def spy(self: BaseFileReader, group: int, names: list[str], *rest: Any) -> Any:
        read.append(names)
        return original(self, group, names, *rest)

    monkeypatch.setattr(BaseFileReader, "_read_row_group", spy)
    pair = make_pair(tmp_path)
    for names in (["id"], [KEY], [], ["id", KEY]):
        pair.read(names)
    assert read == [["id"], [KEY], [KEY], ["id"]]


def test_rows_of_some_commits(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, rows=5)
    for names in (["id"], ["id", TIME]):
        schema = pa.schema([SCHEMA.field(name) for name in names])
        found = pa.Table.from_batches(pair.open(InstantRange("2", "2")).read_batches(schema, 2), schema)
        assert found.column("id").to_pylist() == [0, 2, 4]


def test_dictionaries_stay_where_the_caller_decodes_them(tmp_path: Path) -> None:
    texts = ["a long text that repeats" * 9] * 5000
    source = pa.table({"id": range(5000), "name": texts})
    pair = make_pair(tmp_path, 5000, source_group=5000, source=source)
    batches = list(pair.open().read_batches(SCHEMA, 9999, coded=SCHEMA.names))
    assert pa.types.is_dictionary(batches[0].schema.field("name").type)
    assert pa.Table.from_batches(batches).column("name").to_pylist() == texts


def test_meta_columns_of_the_source_never_count(tmp_path: Path) -> None:
    source = make_data(3).append_column(KEY, [["wrong"] * 3]).append_column("_hoodie_operation", [["D"] * 3])
    pair = make_pair(tmp_path, rows=3, source=source)
    assert [row[KEY] for row in pair.read([KEY, "id"])] == [f"{KEY}-{row}" for row in range(3)]
    reader = pair.open()
    assert "_hoodie_operation" not in reader.columns
    assert KEY in reader.retyped  # so that no row group is left out by the source's statistics
    schema = pa.schema([("_hoodie_operation", pa.string()), ("id", pa.int64())])
    assert [row["_hoodie_operation"] for batch in reader.read_batches(schema, 9) for row in batch.to_pylist()] == [
        None
    ] * 3


def test_columns_that_neither_file_has_are_null(tmp_path: Path) -> None:
    schema = pa.schema([SCHEMA.field(KEY), ("later", pa.float64())])
    found = list(make_pair(tmp_path, rows=2).open().read_batches(schema, 9))
    assert found[0].to_pylist() == [{KEY: f"{KEY}-0", "later": None}, {KEY: f"{KEY}-1", "later": None}]


def test_times_of_old_spark_versions_far_from_today(tmp_path: Path) -> None:
    at = pa.array([253402214400000000, 0], pa.timestamp("us"))
    pair = make_pair(tmp_path, rows=2, source=pa.table({"id": [0, 1], "at": at}))
    path = tmp_path / "source" / "x.parquet"
    pq.write_table(pa.table({"id": [0, 1], "at": at}), path, use_deprecated_int96_timestamps=True)
    assert pair.base.source is not None
    base = replace(pair.base, source=replace(pair.base.source, size=path.stat().st_size))
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    found = list(Pair(tmp_path, base).open().read_batches(schema, 9))
    assert [value.value for value in found[0].column(0)] == [253402214400000000, 0]


def test_files_of_different_length_are_an_error(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, rows=4, source=make_data(5))
    with pytest.raises(CorruptFileError, match=r"4 rows, and its source file 5.*source=.*x\.parquet"):
        pair.open()


def test_a_source_that_changed_is_an_error(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    pq.write_table(make_data(7).append_column("more", [[1] * 7]), tmp_path / "source" / "x.parquet")
    with pytest.raises(CorruptFileError, match=r"had \d+ bytes, now it has"):
        pair.open()
    assert pair.base.source is not None
    unknown = Pair(tmp_path, replace(pair.base, source=replace(pair.base.source, size=None)))
    assert len(unknown.read(["id"])) == 7


def test_a_source_that_is_gone_is_named_with_a_remedy(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    (tmp_path / "source" / "x.parquet").unlink()
    with pytest.raises(FileMissingError, match=rf"gone.*{tmp_path}/source/x\.parquet.*hoodie_py\.read\.bootstrap"):
        pair.open()


def test_a_source_that_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    path = tmp_path / "source" / "x.parquet"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(CorruptFileError, match=rf"{tmp_path}/source/x\.parquet"):
        pair.open()


def test_the_user_may_name_another_folder(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, rows=3)
    (tmp_path / "source").rename(tmp_path / "moved")
    with pytest.raises(FileMissingError):
        pair.open()
    found = pair.open(hoodie_py__read__bootstrap__source=f"file://{tmp_path}/moved")
    assert isinstance(found, BootstrapFileReader)
    assert found.num_rows == 3


def test_another_kind_of_store_only_if_the_user_names_it(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, rows=3)
    files = TableFiles.open("memory://bootstrap-elsewhere")
    files.put("x.parquet", (tmp_path / "source" / "x.parquet").read_bytes())
    assert pair.base.source is not None
    away = Pair(tmp_path, replace(pair.base, source=replace(pair.base.source, folder="memory://bootstrap-elsewhere")))
    with pytest.raises(UnsupportedFeatureError, match=r"another kind of store.*hoodie_py\.read\.bootstrap\.source"):
        away.open()
    assert away.open(hoodie_py__read__bootstrap__source="memory://bootstrap-elsewhere").num_rows == 3


def test_a_skeleton_alone_is_never_read_as_whole(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    with pytest.raises(InvalidTableError, match="no source"):
        Pair(tmp_path, replace(pair.base, source=None)).open()


def test_base_files_with_a_source_are_small_when_pickled(tmp_path: Path) -> None:
    base = make_pair(tmp_path).base
    assert pickle.loads(pickle.dumps(base)) == base
    assert len(pickle.dumps(base)) < 1000
