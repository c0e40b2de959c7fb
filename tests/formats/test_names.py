from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.names import (
    BaseFileName,
    LogFileName,
    MarkerType,
    check_inside,
    escape_partition_value,
    find_file_name,
    make_base_file_name,
    make_log_file_name,
    make_marker_folder,
    make_marker_path,
    parse_base_file_name,
    parse_log_file_name,
    parse_marker,
    split_partition_path,
    unescape_partition_value,
)
from tests.formats.partition_paths import make_partition_path

FILE_ID = "34bb2943-ef2a-40cb-ad0a-963be889cc81-0"
INSTANT = "20261121093514516"

BASE_FILES = {
    f"{FILE_ID}_0-372-435_{INSTANT}.parquet": BaseFileName(FILE_ID, "0-372-435", INSTANT, ".parquet"),
    f"files-0000-0_0-0-0_{INSTANT}.hfile": BaseFileName("files-0000-0", "0-0-0", INSTANT, ".hfile"),
    f"{FILE_ID}_1-0-1_00000000000001.parquet": BaseFileName(FILE_ID, "1-0-1", "00000000000001", ".parquet"),
    f"{FILE_ID}_0_20180101000000.orc": BaseFileName(FILE_ID, "0", "20180101000000", ".orc"),
}
LOG_FILES = {
    f".{FILE_ID}_{INSTANT}.log.1_0-406-481": LogFileName(FILE_ID, INSTANT, 1, "0-406-481"),
    f".{FILE_ID}_{INSTANT}.log.10_1-0-1.cdc": LogFileName(FILE_ID, INSTANT, 10, "1-0-1", ".cdc"),
    f".{FILE_ID}_20180101000000.log.3": LogFileName(FILE_ID, "20180101000000", 3, None),
}
NO_DATA_FILES = [
    "", ".", "..", ".hoodie_partition_metadata", ".hoodie_partition_metadata.parquet", "_SUCCESS",
    f"{FILE_ID}_0-372-435_{INSTANT}.parquet.crc", f".{FILE_ID}_{INSTANT}.log.1_0-406-481.crc",
    f".{FILE_ID}_{INSTANT}.log.1_0-406-481.cdc.crc", f"{FILE_ID}_0-372-435.parquet", f"{FILE_ID}_0-1-2_{INSTANT}.txt",
    f"{FILE_ID}_0-1-2_x.parquet", f".{FILE_ID}_{INSTANT}.log.", f".{FILE_ID}_{INSTANT}.log.x_0-1-2",
    f"{FILE_ID}_{INSTANT}.log.1_0-1-2", f".{FILE_ID}_{INSTANT}.archive.1_0-1-2", f"a/{FILE_ID}_0-1-2_{INSTANT}.parquet",
    f".{FILE_ID}_{INSTANT}.log.1_0-406-481\n", f".{FILE_ID}_{INSTANT}.log.{'9' * 5000}", "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize(("name", "parts"), BASE_FILES.items())
def test_base_file_names_are_taken_apart_and_spelled_again(name: str, parts: BaseFileName) -> None:
    assert parse_base_file_name(name) == parts
    assert parts.name == name
    assert parse_log_file_name(name) is None


@pytest.mark.parametrize(("name", "parts"), LOG_FILES.items())
def test_log_file_names_are_taken_apart_and_spelled_again(name: str, parts: LogFileName) -> None:
    assert parse_log_file_name(name) == parts
    assert parts.name == name
    assert parts.is_cdc is name.endswith(".cdc")
    assert parse_base_file_name(name) is None


@pytest.mark.parametrize("name", NO_DATA_FILES)
def test_other_names_are_no_data_files(name: str) -> None:
    assert parse_base_file_name(name) is None
    assert parse_log_file_name(name) is None


def test_registered_foreign_files_are_refused_rather_than_left_out() -> None:
    with pytest.raises(UnsupportedFeatureError, match="another system"):
        parse_base_file_name(f"part-0001.parquet_{INSTANT}_hudiext")


def test_log_files_sort_by_time_then_version_as_a_number_then_token_as_text() -> None:
    ordered = [
        LogFileName("f", "20260101000000", 9, "0-0-0"),
        LogFileName("f", "20260101000000000", 2, None),
        LogFileName("f", "20260101000000000", 2, "1-0-1"),
        LogFileName("f", "20260101000000000", 2, "1-0-1", ".cdc"),
        LogFileName("f", "20260101000000000", 2, "1-0-10"),
        LogFileName("f", "20260101000000000", 2, "1-0-9"),
        LogFileName("f", "20260101000000000", 10, "0-0-0"),
    ]
    assert sorted(set(ordered), key=lambda name: name.sort_key) == ordered


names = st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=40)
digits = st.text("0123456789", min_size=1, max_size=20)
tokens = st.builds("{}-{}-{}".format, *[st.integers(0, 10**9)] * 3)


@given(names, tokens, digits, st.sampled_from([".parquet", ".orc", ".hfile", ".lance"]))
def test_base_names_round_trip(file_id: str, token: str, instant: str, extension: str) -> None:
    parts = BaseFileName(file_id, token, instant, extension)
    assert parse_base_file_name(parts.name) == parts


@given(names, digits, st.integers(0, 10**8), st.none() | tokens, st.sampled_from(["", ".cdc"]))
def test_log_names_round_trip(file_id: str, instant: str, version: int, token: str | None, suffix: str) -> None:
    parts = LogFileName(file_id, instant, version, token, suffix)
    assert parse_log_file_name(parts.name) == parts


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_not_but_never_fails(text: str) -> None:
    for parsed in (parse_log_file_name(text), parse_base_file_name(text)):
        assert parsed is None or parsed.name == text


@pytest.mark.parametrize(
    "path", ["", "p0", "p0/a.parquet", "year=2026/month=01", "12%3A30", "..a/b..", "a\\b", "x:y", "é"]
)
def test_paths_inside_the_table_pass(path: str) -> None:
    assert check_inside(path) == path


@pytest.mark.parametrize(
    "path",
    ["..", "../x", "a/../../b", "a/..", "/etc/passwd", "//host/x", "s3://b/k", "file:/etc/passwd", "C:/x", "C:\\x",
     "..\\x", "a\\..\\..\\b", "\\\\host\\share", "a\0b", ".", "a/./b"],
)  # fmt: skip
def test_paths_that_lead_out_of_the_table_are_refused(path: str) -> None:
    with pytest.raises(InvalidTableError):
        check_inside(path)


def test_file_name_of_takes_the_last_segment_of_paths_and_uris() -> None:
    assert find_file_name("file:/tmp/t/p0/f.parquet") == "f.parquet"
    assert find_file_name("s3a://lake/t/.x.log.1_0-0-0") == ".x.log.1_0-0-0"
    assert find_file_name("f.parquet") == "f.parquet"
    for bad in ("", "a/", "a/..", "a\\..", "a\0"):
        with pytest.raises(InvalidTableError):
            find_file_name(bad)


# What Java Hudi 1.2.0 writes for these values with url-encoding on.
@pytest.mark.parametrize(
    ("value", "escaped"),
    [("plain value é", "plain value é"), ("a/b", "a%2Fb"), ("12:30", "12%3A30"), ("a=b", "a%3Db"), ("100%", "100%25"),
     ("\x01\x1f\x7f", "%01%1F%7F"), ("\"#'*?\\{[]^", "%22%23%27%2A%3F%5C%7B%5B%5D%5E"), ("}~ ,;", "}~ ,;")],
)  # fmt: skip
def test_partition_values_are_escaped_as_java_does(value: str, escaped: str) -> None:
    assert escape_partition_value(value) == escaped
    assert unescape_partition_value(escaped) == value


def test_percent_without_two_hex_digits_stays() -> None:
    assert unescape_partition_value("5%zz%4%41%") == "5%zz%4A%"


@given(st.text())
def test_escaping_round_trips(value: str) -> None:
    assert unescape_partition_value(escape_partition_value(value)) == value


@pytest.mark.parametrize(
    ("path", "fields", "texts"),
    [
        ("", (), ()),
        ("p0", ("part",), ("p0",)),
        ("part=p0", ("part",), ("p0",)),
        ("Part=p0", ("part",), ("p0",)),
        ("part=a=b", ("part",), ("a=b",)),
        ("12%3A30", ("part",), ("12:30",)),
        ("__HIVE_DEFAULT_PARTITION__", ("part",), (None,)),
        ("part=__HIVE_DEFAULT_PARTITION__", ("part",), (None,)),
        ("default", ("part",), ("default",)),
        ("1/2024-01-01", ("pi", "pd"), ("1", "2024-01-01")),
        ("pi=1/pd=__HIVE_DEFAULT_PARTITION__", ("pi", "pd"), ("1", None)),
        ("2023/11/14", ("day",), ("2023/11/14",)),
        ("day=2023/11/14", ("day",), ("2023/11/14",)),
        ("a=x/y/b=z", ("a", "b"), ("x/y", "z")),
        ("x/y/z", ("a", "b"), None),
        ("a=x/y/z", ("a", "b"), None),
        ("x", ("a", "b"), None),
    ],
)
def test_partition_paths_are_split_as_the_spark_reader_does(
    path: str, fields: tuple[str, ...], texts: tuple[str | None, ...] | None
) -> None:
    assert split_partition_path(path, fields) == texts


def test_default_is_null_for_tables_of_old_releases_only() -> None:
    assert split_partition_path("default", ("part",), legacy_default=True) == (None,)


values = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(st.lists(values, min_size=1, max_size=3), st.booleans())
def test_url_encoded_partition_paths_round_trip(texts: list[str | None], hive_style: bool) -> None:
    fields = tuple(f"f{index}" for index in range(len(texts)))
    path = make_partition_path(fields, tuple(texts), hive_style=hive_style, url_encode=True)
    expected = tuple(None if text == "__HIVE_DEFAULT_PARTITION__" else text for text in texts)
    assert split_partition_path(path, fields) == expected


def test_names_are_built_from_what_they_read_back_to() -> None:
    for name, parts in BASE_FILES.items():
        assert make_base_file_name(parts.file_id, parts.write_token, parts.instant, parts.extension) == name
    for name, log in LOG_FILES.items():
        if log.write_token is not None:
            assert make_log_file_name(log.file_id, log.instant, log.version, log.write_token, log.suffix) == name


@pytest.mark.parametrize("file_id", ["", "a_b", "a.b", "a/b", "../a"])
def test_file_ids_that_would_not_read_back_are_refused(file_id: str) -> None:
    with pytest.raises(InvalidTableError):
        make_base_file_name(file_id, "0-0-0", INSTANT)
    with pytest.raises(InvalidTableError):
        make_log_file_name(file_id, INSTANT, 1, "0-0-0")


def test_other_parts_that_would_not_read_back_are_refused() -> None:
    for token, instant in (("0_0", INSTANT), ("0-0-0", "now"), ("0-0-0/..", INSTANT)):
        with pytest.raises(InvalidTableError):
            make_base_file_name("f", token, instant)
        with pytest.raises(InvalidTableError):
            make_log_file_name("f", instant, 1, token)
    with pytest.raises(InvalidTableError):
        make_log_file_name("f", INSTANT, -1, "0-0-0")
    with pytest.raises(InvalidTableError):
        make_base_file_name("f", "0-0-0", INSTANT, ".exe")


@pytest.mark.parametrize(("partition", "folder"), [("", ""), ("p0", "p0/"), ("a=1/b=2", "a=1/b=2/")])
@pytest.mark.parametrize("kind", list(MarkerType))
def test_markers_lie_in_the_folder_of_their_instant(partition: str, folder: str, kind: MarkerType) -> None:
    path = make_marker_path(INSTANT, partition, "f.parquet", kind)
    assert path == f".hoodie/.temp/{INSTANT}/{folder}f.parquet.marker.{kind.name}"
    assert parse_marker(path) == (f"{make_marker_folder(INSTANT)}/{folder}f.parquet", kind)


def test_other_files_are_no_markers() -> None:
    for name in ("MARKERS.type", "a.marker.NONE", ".marker.MERGE", "a.marker.MERGE.crc"):
        assert parse_marker(name) is None
    with pytest.raises(InvalidTableError):
        make_marker_path(INSTANT, "../p", "f", MarkerType.MERGE)
