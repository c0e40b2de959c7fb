"""How the runs of `make test` make one result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import pytest

from tests import __main__ as all_tests

RUNS = ["not spark and not java and not thorough", "spark and not thorough", "java and not slow and not thorough"]


@pytest.mark.parametrize(
    ("statuses", "result"),
    [([0, 0, 0], 0), ([0, 5, 5], 0), ([5, 5, 5], 5), ([0, 1, 5], 1), ([0, 0, 2], 2), ([4, 0, 0], 4), ([0, 0, -9], -9)],
)
def test_a_run_that_fails_fails_all(monkeypatch: pytest.MonkeyPatch, statuses: list[int], result: int) -> None:
    def run(chosen: Sequence[str], given: Sequence[str], into: IO[str] | None = None) -> int:
        assert list(given) == ["-k", "name"]
        return statuses[RUNS.index(chosen[-1])]

    monkeypatch.setattr(all_tests, "run_pytest", run)
    assert all_tests.main(["-k", "name"]) == result


def test_what_runs_beside_is_printed_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(chosen: Sequence[str], given: Sequence[str], into: IO[str] | None = None) -> int:
        print(f"ran {chosen[-1]}", file=into)
        return 0

    monkeypatch.setattr(all_tests, "run_pytest", run)
    all_tests.main([])
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("ran ")]
    assert printed == [f"ran {run}" for run in RUNS]
