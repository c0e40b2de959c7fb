"""The Python of Spark's workers is looked at before a query fails in it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hoodie_py.errors import HoodieWarning
from hoodie_py.spark.worker_python import find_worker_problem, warn_of_worker_python


def make_python(folder: Path, prints: str) -> str:
    command = folder / "python3"
    command.write_text(f"#!/bin/sh\n{prints}\n")
    command.chmod(0o755)
    return str(command)


def test_this_python_is_sound() -> None:
    assert find_worker_problem(sys.executable) is None


def test_the_environment_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")
    assert find_worker_problem() == (
        f"Spark's workers would run /no/such/python, which is not there. "
        f"Set PYSPARK_PYTHON={sys.executable} before the session starts."
    )


OURS = "{}.{}".format(*sys.version_info[:2])


@pytest.mark.parametrize(
    ("prints", "said"),
    [
        (f"echo {OURS} numpy pyarrow", "which has no numpy and no pyarrow"),
        ("echo 3.8", f"which is Python 3.8; this is Python {OURS}"),
        ("exit 3", "which does not run (CalledProcessError)"),
    ],
)
def test_what_is_wrong_is_one_sentence(prints: str, said: str, tmp_path: Path) -> None:
    problem = find_worker_problem(make_python(tmp_path, prints))
    assert problem is not None
    assert said in problem
    assert problem.endswith(f"Set PYSPARK_PYTHON={sys.executable} before the session starts.")


def test_another_python_with_all_it_needs_is_sound(tmp_path: Path) -> None:
    assert find_worker_problem(make_python(tmp_path, f"echo {OURS}")) is None


def test_workers_elsewhere_are_not_asked(tmp_path: Path) -> None:
    bad = make_python(tmp_path, "echo 3.8")
    warn_of_worker_python(SimpleNamespace(sparkContext=SimpleNamespace(master="yarn", pythonExec=bad)))
    with pytest.warns(HoodieWarning, match="is Python 3.8"):
        warn_of_worker_python(SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]", pythonExec=bad)))
