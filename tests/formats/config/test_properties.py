from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config.properties import format_properties, parse_properties, update_properties

# The examples are those of the java.util.Properties documentation and of files that Hudi wrote.
CASES = [
    (b"", {}),
    (b"#c\n! c\n   # c\na=1\n", {"a": "1"}),
    (b"a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
    (b"Truth = Beauty\n Truth2:Beauty\nTruth3   :Beauty", {"Truth": "Beauty", "Truth2": "Beauty", "Truth3": "Beauty"}),
    (b"fruits  apple, banana, \\\n        cherry\n", {"fruits": "apple, banana, cherry"}),
    (b"cheeses\n", {"cheeses": ""}),
    (b"a=\n", {"a": ""}),
    (b"=v\n", {"": "v"}),
    (b"a==b:c d", {"a": "=b:c d"}),
    (b"a  = = b", {"a": "= b"}),
    (b"k\\:e\\=y\\ 1 = v", {"k:e=y 1": "v"}),
    (b'schema={"type"\\:"record"}', {"schema": '{"type":"record"}'}),
    (b"a=\\t\\n\\r\\f\\\\\\z\\#\\!", {"a": "\t\n\r\f\\z#!"}),
    (b"a=\\u00e9\\u4E2D\\uD83D\\uDE00", {"a": "é中😀"}),
    (b"a=\xe9", {"a": "é"}),
    (b"a=x \n", {"a": "x "}),
    (b"a=\\ x", {"a": " x"}),
    (b"a=1\na=2", {"a": "2"}),
    (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    (b"a=1\\\n\nb=2", {"a": "1", "b": "2"}),
    (b"a=1\\\n#2", {"a": "1#2"}),
    (b"a=1\\", {"a": "1"}),
]


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_files_read_as_java_reads_them(data: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(data) == expected


def test_a_malformed_escape_is_an_error_as_in_java() -> None:
    with pytest.raises(InvalidTableError, match="escape"):
        parse_properties(b"a=\\u12g4")


def test_a_lone_surrogate_never_reaches_the_caller() -> None:
    assert parse_properties(b"a=\\uD83Dx") == {"a": "�x"}


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(texts, texts), st.none() | st.text(st.characters(codec="ascii")))
def test_written_files_read_back(properties: dict[str, str], comment: str | None) -> None:
    assert parse_properties(format_properties(properties, comment)) == properties


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        parse_properties(data)
    except InvalidTableError:
        assert b"\\u" in data


def test_changes_leave_everything_else_as_it_stands() -> None:
    before = b"#Sat Nov 21\r\n\r\na = 1\nlong=x\\\n   y\n! c\n\xe9=\xe9\nb\\:c:2\na=3\nlast=z"
    changes = {"a": "4=5", "long": None, "b:c": "\u4e2d", "new key": " v", "absent": None}
    after = b"#Sat Nov 21\r\n\r\na=4\\=5\n! c\n\xe9=\xe9\nb\\:c=\\u4E2D\nlast=z\nnew\\ key=\\ v\n"
    assert update_properties(before, changes) == after
    assert update_properties(before, {}) in (before, before + b"\n")


def test_a_file_that_ends_within_a_continued_line_can_be_changed() -> None:
    assert parse_properties(update_properties(b"#c\na=1\\", {"b": "2"})) == {"a": "1", "b": "2"}


@given(st.binary(max_size=200), st.dictionaries(texts, st.none() | texts, max_size=4))
def test_changed_files_read_back(before: bytes, changes: dict[str, str | None]) -> None:
    try:
        properties = parse_properties(before)
    except InvalidTableError:
        return
    expected = {key: value for key, value in {**properties, **changes}.items() if value is not None}
    assert parse_properties(update_properties(before, changes)) == expected
