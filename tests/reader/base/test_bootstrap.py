"""Skeletons of a metadata-only bootstrap, read beside their sources."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from hoodie_py.errors import CorruptFileError, FileMissingError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.base.bootstrap import BootstrapFileReader, list_allowed_stores, open_base_file
from hoodie_py.reader.file_slice import BlockRules, InstantRange
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from tests.bootstrap_pair import KEY, SCHEMA, TIME, Pair, make_data, make_pair
from tests.table.tables import open_view


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
    count = len(pair.open().group_rows)
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
    assert away.open(hoodie_py__read__bootstrap__stores="s3, memory").num_rows == 3
    with pytest.raises(UnsupportedFeatureError, match=r"allow 'memory' in hoodie_py\.read\.bootstrap\.stores"):
        away.open(hoodie_py__read__bootstrap__stores="s3")


@pytest.mark.parametrize(
    ("option", "variable", "allowed"),
    [
        ("", "", []),
        ("s3a,gs", "file", ["s3", "gs"]),
        ("", "LOCAL, s3n", ["file", "s3"]),
    ],
)
def test_stores_that_the_user_allows(option: str, variable: str, allowed: list[str]) -> None:
    options = {"hoodie_py.read.bootstrap.stores": option} if option else {}
    assert list_allowed_stores(options, {"HOODIE_PY_BOOTSTRAP_STORES": variable}) == frozenset(allowed)


def test_both_files_may_lie_in_a_remote_store(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, rows=20, skeleton_group=6, source_group=4)
    store = TableFiles.open("memory://bootstrap-remote")
    for path in (f"table/{pair.base.path}", "source/x.parquet"):
        store.put(path, (tmp_path / path).read_bytes())
    assert pair.base.source is not None
    base = replace(pair.base, source=replace(pair.base.source, folder="memory://bootstrap-remote/source"))
    info = ReadInfo(store.sub("table"), open_view(pair.table).config, SCHEMA, {}, BlockRules())
    batches = open_base_file(info, base, ReadOptions()).read_batches(SCHEMA, 5, [0, 2, 3])
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15]
    assert all(row[KEY] == f"{KEY}-{row['id']}" for row in rows)


def test_sources_of_another_format_are_refused_by_name(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    (tmp_path / "source" / "x.csv").write_bytes(b"1,2")
    assert pair.base.source is not None
    other = Pair(tmp_path, replace(pair.base, source=replace(pair.base.source, path="x.csv", size=None)))
    with pytest.raises(UnsupportedFeatureError, match=rf"csv format.*{tmp_path}/source/x\.csv"):
        other.open()


@pytest.mark.parametrize("groups", [None, [0], [1]])
def test_both_files_may_be_orc_files(groups: list[int] | None, tmp_path: Path) -> None:
    """A base file in the ORC format has a source in the ORC format."""
    rows = 60_000
    pair = make_pair(tmp_path, rows)
    skeleton, source = tmp_path / "table" / pair.base.path, tmp_path / "source" / "x.parquet"
    orc.write_table(pq.read_table(skeleton), skeleton.with_suffix(".orc"), compression="zlib")
    orc.write_table(pq.read_table(source), source.with_suffix(".orc"), stripe_size=1 << 16, batch_size=1024)
    size = source.with_suffix(".orc").stat().st_size
    assert pair.base.source is not None
    base = replace(
        pair.base,
        path=pair.base.path.replace(".parquet", ".orc"),
        size=skeleton.with_suffix(".orc").stat().st_size,
        source=replace(pair.base.source, path="x.orc", size=size),
    )
    both = Pair(tmp_path, base)
    sizes = list(both.open().group_rows)
    assert len(sizes) > 1
    start, count = (0, rows) if groups is None else (sum(sizes[: groups[0]]), sizes[groups[0]])
    found = both.read(["id", KEY], 999, groups)
    assert [row["id"] for row in found] == list(range(start, start + count))
    assert all(row[KEY] == f"{KEY}-{row['id']}" for row in found)
    source.with_suffix(".orc").write_bytes(b"ORC" + bytes(size - 3))
    with pytest.raises(CorruptFileError, match=rf"{tmp_path}/source/x\.orc"):
        both.open()


@pytest.mark.parametrize("linked", ["x.parquet", "inside/x.parquet"])
def test_a_link_out_of_the_source_folder_is_not_followed(linked: str, tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "source" / "x.parquet").rename(outside / "x.parquet")
    link = tmp_path / "source" / linked.partition("/")[0]
    link.symlink_to(outside if "/" in linked else outside / "x.parquet")
    assert pair.base.source is not None
    base = replace(pair.base, source=replace(pair.base.source, path=linked))
    with pytest.raises(InvalidTableError, match="symbolic link leads out"):
        Pair(tmp_path, base).open()


def test_a_skeleton_alone_is_never_read_as_whole(tmp_path: Path) -> None:
    pair = make_pair(tmp_path)
    with pytest.raises(InvalidTableError, match="no source"):
        Pair(tmp_path, replace(pair.base, source=None)).open()


def test_base_files_with_a_source_are_small_when_pickled(tmp_path: Path) -> None:
    base = make_pair(tmp_path).base
    assert pickle.loads(pickle.dumps(base)) == base
    assert len(pickle.dumps(base)) < 1000
