"""The names that Java Hudi 1.2.0 takes at creation, for added columns and within structs, and those that it refuses."""

from __future__ import annotations

import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.column_names import check_name, check_siblings, fold_case

TAKEN = ["größe", "имя", "价格", "é", "_x", "__x", "ª", "x٣", "ａ", "İ", "ß", "_hoodie_is_deleted_x", "名前2"]
REFUSED = [
    "", "a-b", "a b", "1a", "a.b", "a$", "e\u0301", "😀", "٣x", "²x", "x²", "a/b", "a:b", "Ⅷ", "a`b",
    "a\tb", "a'b", "a\nb", "x\u200d", "\u0301e", "a@b", "a#b", "a,b", "a=b", "a;b", "a(b", "{a}", "x\u00a0y", "𝒜", "x𝟛",
]  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_letters_and_digits_of_every_script(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", REFUSED)
def test_what_java_refuses(name: str) -> None:
    with pytest.raises(InvalidQueryError, match="cannot be the name of a column"):
        check_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("id", "ID"),
        ("id", "Id"),
        ("größe", "GRÖSSE".replace("SS", "ß")),
        ("имя", "ИМЯ"),
        ("s", "ſ"),
        ("i", "İ"),
        ("k", "K"),
    ],
)
def test_names_that_spark_cannot_tell_apart(one: str, other: str) -> None:
    assert fold_case(one) == fold_case(other)
    with pytest.raises(InvalidQueryError, match="cannot tell them apart"):
        check_siblings(["x", one, other])


def test_others_stand_side_by_side() -> None:
    check_siblings(["id", "ids", "größe", "grösse", "ss", "ß", "1", "2"])
    with pytest.raises(InvalidQueryError, match="more than once"):
        check_siblings(["id", "id"])
