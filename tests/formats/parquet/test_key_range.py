from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.parquet.key_range import KeyRange

# Characters on both sides of where the order of UTF-16 leaves that of UTF-8.
keys = st.text(st.sampled_from("aZ\x7f\x80ÿ퟿\ue000\uee00\uffff\U00010000\U0010ffff") | st.characters(codec="utf-8"))


@given(st.lists(st.lists(keys, max_size=8), max_size=4), st.integers(0, 3))
def test_the_order_is_that_of_java_strings(batches: list[list[str]], skip: int) -> None:
    found = KeyRange()
    for batch in batches:
        found.add(pa.array(batch, pa.string())[skip:])
    together = sorted((key for batch in batches for key in batch[skip:]), key=lambda key: key.encode("utf-16-be"))
    assert (found.least, found.greatest) == ((together[0], together[-1]) if together else (None, None))


def test_null_keys_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        KeyRange().add(pa.array([None], pa.string()))
