"""Every parser answers or raises a HoodieError, whatever it is given; and what was found by fuzzing stays fixed."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import parsers, run
from tests.fuzz.trees import BUILT

FINDINGS = sorted((Path(__file__).parent / "findings").glob("*.bin"))


@cache
def seeds(name: str) -> list[bytes]:
    return parsers.load(name).seeds()


def test_every_module_is_a_parser_with_seeds() -> None:
    assert sorted(parsers.NAMES) == sorted(module.name for module in pkgutil.iter_modules(parsers.__path__))
    for name in parsers.NAMES:
        assert all(len(seed) <= run.LONGEST_INPUT for seed in seeds(name)), name
        assert len(seeds(name)) >= 3, name


@pytest.mark.parametrize("name", parsers.NAMES)
def test_seeds_are_read(name: str) -> None:
    for seed in seeds(name):
        parsers.load(name).parse(seed)


def damaged(name: str) -> st.SearchStrategy[bytes]:
    """Seeds with some bytes changed, put in or cut off."""
    edits = st.lists(
        st.tuples(st.integers(0, 1 << 16), st.integers(0, 3), st.binary(max_size=4)), min_size=1, max_size=4
    )
    return st.builds(_edited, st.sampled_from(seeds(name)), edits, st.integers(0, 1 << 16))


def _edited(seed: bytes, edits: list[tuple[int, int, bytes]], cut: int) -> bytes:
    data = seed
    for place, removed, put in edits:
        at = place % (len(data) + 1)
        data = data[:at] + put + data[at + removed :]
    return data if cut % 3 else data[: cut % (len(data) + 1)]


@pytest.mark.parametrize("name", parsers.NAMES)
def test_hostile_input_gives_an_answer_or_a_typed_error(name: str) -> None:
    parse = parsers.load(name).parse

    @settings(max_examples=200)
    @given(damaged(name) | st.binary(max_size=200) | st.binary(max_size=60).map(lambda rest: bytes([BUILT]) + rest))
    def check(data: bytes) -> None:
        parse(data)

    check()


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda path: path.name)
def test_what_was_found_stays_fixed(finding: Path) -> None:
    parsers.load(finding.name.partition("-")[0]).parse(finding.read_bytes())


def test_findings_are_named_for_a_parser() -> None:
    assert FINDINGS
    assert {finding.name.partition("-")[0] for finding in FINDINGS} <= set(parsers.NAMES)


def test_the_harness_can_be_imported_without_atheris() -> None:
    assert callable(importlib.import_module("tests.fuzz.harness").main)


def test_an_unknown_parser_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["no_such_parser"])
    assert "no parser no_such_parser" in capsys.readouterr().err
