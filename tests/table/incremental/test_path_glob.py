"""Globs of Hadoop, which choose the paths of an incremental query."""

from __future__ import annotations

import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.incremental.touched_slices import compile_glob

PATH = "/lake/t/2026/11/25/a_1.parquet"


@pytest.mark.parametrize(
    "glob", ["*", "**", "*/2026/*", "*/20??/11/*", "*/2026/1[0-2]/*", "*/2026/{10,11}/*", "*[!b]_1.parquet", "*[^b]_1*"]
)
def test_what_matches(glob: str) -> None:
    assert compile_glob(glob).fullmatch(PATH)


@pytest.mark.parametrize("glob", ["/2026/*", "*/2026/1[2-9]/*", "*/2026/{09,10}/*", "*.log", r"*\*", "*[!a]_1.parquet"])
def test_what_does_not(glob: str) -> None:
    assert not compile_glob(glob).fullmatch(PATH)


@pytest.mark.parametrize("glob", ["[abc", "*{a,b", "[z-a]", "x" * 5000])
def test_broken_globs_are_refused(glob: str) -> None:
    with pytest.raises(InvalidQueryError, match=r"incr\.path\.glob is no glob"):
        compile_glob(glob)


def test_many_stars_take_no_time() -> None:
    assert not compile_glob("*" * 4000 + "x").fullmatch("a" * 5000)
