"""Offsets of streams: their form in a checkpoint, and the tables that they belong to."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import InvalidQueryError
from hoodie_py.spark.stream.offset import StreamOffset

TIMES = st.from_regex(r"[0-9]{1,32}", fullmatch=True)
OFFSETS = st.builds(StreamOffset, st.text(max_size=9), TIMES | st.just(""), st.booleans(), TIMES | st.none())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(OFFSETS)
def test_an_offset_survives_its_checkpoint(offset: StreamOffset) -> None:
    text = json.dumps(offset.to_json())
    assert StreamOffset.from_json(json.loads(text)) == offset
    assert json.dumps(StreamOffset.from_json(json.loads(text)).to_json()) == text


@given(OFFSETS, st.sampled_from(["hoodie_py", "table", "position", "times", "commit"]), JSON)
def test_what_is_no_offset_is_refused(offset: StreamOffset, name: str, value: object) -> None:
    try:
        read = StreamOffset.from_json({**offset.to_json(), name: value})
    except InvalidQueryError:
        return
    assert read.to_json() == {**offset.to_json(), name: value}


@given(JSON)
def test_offsets_of_other_sources_are_refused(value: object) -> None:
    said = r"offsets of another source.*hoodie\.datasource\.streaming\.startOffset"
    with pytest.raises(InvalidQueryError, match=said):
        StreamOffset.from_json(value)
