from __future__ import annotations

import pickle

import pytest

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.options.parse import Choice, Flag, Names, Number, Option, Real, Size, Text
from hoodie_py.options.read import CUSTOM_MERGER_CLASSES, QUERY_TYPE, SAME_ORDERING_UPDATES


def test_options_have_older_names_and_defaults() -> None:
    assert QUERY_TYPE.read({"hoodie.datasource.query.type": "read_optimized"}) == "read_optimized"
    assert QUERY_TYPE.read({"hoodie.datasource.view.type": "read_optimized"}) == "read_optimized"
    assert CUSTOM_MERGER_CLASSES.read({"hoodie.datasource.write.record.merger.impls": " a,b "}) == ("a", "b")
    both = {"hoodie.datasource.view.type": "read_optimized", "hoodie.datasource.query.type": "snapshot"}
    assert QUERY_TYPE.read(both) == "snapshot"
    assert QUERY_TYPE.read({QUERY_TYPE: " "}) == "snapshot"
    assert QUERY_TYPE.read_given({}) is None


def test_an_option_is_its_key_and_travels_as_one() -> None:
    key = Number("hoodie.x", 5)
    assert {key: 1} == {"hoodie.x": 1}
    assert f"{key}" == "hoodie.x"
    assert type(pickle.loads(pickle.dumps(key))) is str


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (Flag("k", default=False), "TRUE", True),
        (Flag("k", default=True), " false ", False),
        (Flag("k", default=True), " ", True),
        (Number("k", 5), "+12", 12),
        (Number("k", 5), "007", 7),
        (Number("k", 5, least=-3), "-3", -3),
        (Number("k", 5), "9223372036854775807", (1 << 63) - 1),
        (Size("k", 5), "1073741824", 1 << 30),
        (Real("k", 5), "0", 0.0),
        (Real("k", 5), "1e3", 1000.0),
        (Real("k", 5), ".5", 0.5),
        (Choice("k", ("one", "TWO")), "Two", "TWO"),
        (Names("k"), "a,, b", ("a", "b")),
        (Text("k"), " a b ", "a b"),
    ],
)
def test_texts_that_java_takes_mean_the_same(option: Option, text: str, value: object) -> None:
    assert option.read({"k": text}) == value  # type: ignore[attr-defined]
    option.check({"k": text})


@pytest.mark.parametrize(
    ("option", "text", "wanted"),
    [
        (Flag("k", default=True), "yes", "true or false"),
        (Flag("k", default=True), "1", "true or false"),
        (Flag("k", default=True), "ｔｒｕｅ", "true or false"),
        (Number("k", 5), "1.0", "a whole number from 0 on"),
        (Number("k", 5), "1_000", "a whole number from 0 on"),
        (Number("k", 5), "٣", "a whole number from 0 on"),
        (Number("k", 5), "-1", "a whole number from 0 on"),
        (Number("k", 5), "9223372036854775808", "a whole number from 0 on"),
        (Number("k", 5), "9" * 5000, "a whole number from 0 on"),
        (Number("k", 5, unit="MB", most=9), "10", "a whole number of MB from 0 to 9"),
        (Size("k", 5), "1GB", "a whole number of bytes from 0 on, such as 1073741824 for 1 GB"),
        (Real("k", 5), "inf", "a number from 0 on"),
        (Real("k", 5), "1e999", "a number from 0 on"),
        (Real("k", 5, above=0, below=1), "1", "a number over 0, below 1"),
        (Choice("k", ("one", "TWO")), "three", "one of one, TWO"),
    ],
)
def test_other_texts_are_one_kind_of_error(option: Option, text: str, wanted: str) -> None:
    with pytest.raises(InvalidQueryError, match="k cannot be '") as caught:
        option.check({"k": text})
    assert caught.value.hint == f"Give {wanted}."
    assert len(str(caught.value)) < 400


def test_words_of_java_for_what_is_not_handled_are_another_error() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"k=Cdc"):
        Choice("k", ("snapshot",), unhandled=("CDC",)).read({"k": "Cdc"})


def test_what_a_table_stores_is_read_as_java_reads_it() -> None:
    assert SAME_ORDERING_UPDATES.read_as_java({})
    assert SAME_ORDERING_UPDATES.read_as_java({SAME_ORDERING_UPDATES: "True"})
    assert not SAME_ORDERING_UPDATES.read_as_java({SAME_ORDERING_UPDATES: "yes"})
