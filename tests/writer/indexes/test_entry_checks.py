"""Two sets of keyed values are compared as Python's dictionaries are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py.reader.memory import grouped
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.writer.indexes.entry_checks import Comparison, Counts

VALUES = st.dictionaries(st.binary(min_size=1, max_size=2), st.sampled_from([b"x", b"y"]), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expected=VALUES, found=VALUES, limit=st.sampled_from([1 << 10, 1 << 30]))
def test_every_difference_is_found(
    expected: dict[bytes, bytes], found: dict[bytes, bytes], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouped, "_BATCH_ROWS", 3)
    told: list[tuple[str, bytes, bytes | None, bytes | None]] = []
    with Comparison(MemoryBudget(limit)) as comparison:
        for values, is_there in ((expected, False), (found, True)):
            for key, value in values.items():
                comparison.add(pa.array([key], pa.binary()), pa.array([value], pa.binary()), is_there=is_there)
        counts = comparison.compare(lambda *what: told.append(what))
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
