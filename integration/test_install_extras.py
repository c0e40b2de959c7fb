"""Every extra has a use that is tried, and Pythons are found by what they are, not by their names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from integration.extra_uses import USES, WrongAnswerError, expect
from integration.install_extras import ALL, EXTRAS, PROJECT, VERSIONS, find_python, main


def test_every_extra_has_a_use() -> None:
    assert {*EXTRAS} == {*USES, ALL}


def test_the_extra_all_has_the_others() -> None:
    (every,) = PROJECT["optional-dependencies"][ALL]
    assert sorted(every.removeprefix("hoodie_py[").removesuffix("]").split(",")) == sorted(
        each for each in USES if each
    )


def test_a_wrong_answer_fails() -> None:
    with pytest.raises(WrongAnswerError, match="rows: 8, not 9"):
        expect(8, 9, "rows")


def test_a_program_that_only_has_the_name_of_a_python_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho '3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_python("3.12") != str(shim)


def test_this_python_is_found() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version in VERSIONS:
        assert find_python(version) is not None


def test_without_a_wheel_it_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--wheel", str(tmp_path / "none.whl")])
    assert "make wheel" in capsys.readouterr().err
