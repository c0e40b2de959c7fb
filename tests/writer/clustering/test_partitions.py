from __future__ import annotations

import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.clustering import DAY_ROLLING, NO_FILTER, RECENT_DAYS, SELECTED_PARTITIONS
from hoodie_py.writer.clustering.plan import choose_partitions

PATHS = [f"2026-01-0{day}" for day in (1, 3, 2, 5, 4)]
PLAN = "hoodie.clustering.plan.strategy"


@pytest.mark.parametrize(
    ("mode", "options", "expected"),
    [
        (NO_FILTER, {}, PATHS),
        (NO_FILTER, {f"{PLAN}.partition.selected": "2026-01-04,2026-01-01,gone"}, ["2026-01-01", "2026-01-04"]),
        (NO_FILTER, {f"{PLAN}.partition.regex.pattern": ".*0[12]"}, ["2026-01-01", "2026-01-02"]),
        (NO_FILTER, {f"{PLAN}.partition.regex.pattern": "2026"}, []),
        (RECENT_DAYS, {}, ["2026-01-05", "2026-01-04"]),
        (RECENT_DAYS, {f"{PLAN}.daybased.skipfromlatest.partitions": "1"}, ["2026-01-04", "2026-01-03"]),
        (RECENT_DAYS, {f"{PLAN}.daybased.lookback.partitions": "1"}, ["2026-01-05"]),
        (SELECTED_PARTITIONS, {f"{PLAN}.cluster.begin.partition": "2026-01-04"}, ["2026-01-05", "2026-01-04"]),
        (
            SELECTED_PARTITIONS,
            {f"{PLAN}.cluster.begin.partition": "2026-01-02", f"{PLAN}.cluster.end.partition": "2026-01-03"},
            ["2026-01-03", "2026-01-02"],
        ),
        (DAY_ROLLING, {}, ["2026-01-03"]),
    ],
)
def test_partitions_are_chosen_as_java_does(mode: str, options: dict[str, str], expected: list[str]) -> None:
    assert choose_partitions(PATHS, mode, options, hour=2) == expected


def test_a_bad_pattern_is_an_error() -> None:
    with pytest.raises(InvalidQueryError, match="pattern"):
        choose_partitions(PATHS, NO_FILTER, {f"{PLAN}.partition.regex.pattern": "("}, hour=0)
