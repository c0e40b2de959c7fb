"""Which merge cases run: those of ``--merge-cases``, else those beside the checkout, else the packaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reader.merge_cases.case import load_cases

ROOT = Path(__file__).resolve().parents[2]
WHOLE = ROOT.parent / "shared" / "spec" / "merge_cases.jsonl"
PACKAGED = ROOT / "tests" / "data" / "merge_cases.jsonl"


def case_file(config: pytest.Config) -> Path:
    """The file whose cases run; relative paths are taken from where pytest was started."""
    given = config.getoption("--merge-cases")
    if given:
        path = Path(config.invocation_params.dir, given)
        if not path.is_file():
            raise pytest.UsageError(f"--merge-cases: there is no file {path}")
        return path
    return WHOLE if WHOLE.is_file() else PACKAGED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "merge_case" in metafunc.fixturenames:
        cases = load_cases(case_file(metafunc.config))
        metafunc.parametrize("merge_case", cases, ids=[case.id for case in cases])
