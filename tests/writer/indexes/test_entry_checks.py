"""Two sets of keyed values are compared as Python's dictionaries are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import SortedRecords
from hoodie_py.writer.indexes.entry_checks import Counts, compare

VALUES = st.dictionaries(st.binary(min_size=1, max_size=2), st.sampled_from([b"x", b"y"]), max_size=40)


def sort(values: dict[bytes, bytes], batch_rows: int) -> SortedRecords:
    records = SortedRecords(MemoryBudget(1 << 30), portion_bytes=100, batch_rows=batch_rows)
    for key, value in values.items():
        records.add(np.zeros(1, int), pa.array([key], pa.binary()), pa.array([value], pa.binary()))
    return records


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES, st.integers(1, 4))
def test_every_difference_is_found(expected: dict[bytes, bytes], found: dict[bytes, bytes], batch_rows: int) -> None:
    told: list[tuple[str, bytes, bytes | None, bytes | None]] = []
    with sort(expected, batch_rows) as wanted, sort(found, batch_rows + 1) as there:
        counts = compare(wanted, there, lambda *what: told.append(what))
    assert sorted(told) == sorted(
        [
            *(("missing", key, value, None) for key, value in expected.items() if key not in found),
            *(("extra", key, None, value) for key, value in found.items() if key not in expected),
            *(
                ("wrong", key, value, found[key])
                for key, value in expected.items()
                if key in found and found[key] != value
            ),
        ],
        key=lambda what: what[:2],
    )
    kinds = [what[0] for what in told]
    right = len(set(expected.items()) & set(found.items()))
    assert counts == Counts(right, kinds.count("missing"), kinds.count("extra"), kinds.count("wrong"))
