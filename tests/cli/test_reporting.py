from __future__ import annotations

import warnings

import pytest
import typer

from hoodie_py.cli.console import report_errors
from hoodie_py.errors import CorruptFileError, HoodieWarning


def failing(error: Exception, debug: bool = False) -> int:
    with pytest.raises(typer.Exit) as ended, report_errors(debug):
        raise error
    return int(ended.value.exit_code)


def test_error_is_one_line_with_place_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(CorruptFileError("It is broken.", hint="Mend it.", path="a/b", offset=7)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: It is broken. [path=a/b, offset=7] Mend it.\n"


def test_error_does_not_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    failing(CorruptFileError("a\x1b[2Jb\nc [red]", path="\x07"))
    assert capsys.readouterr().err == "error: a\\x1b[2Jb\\nc [red] [path=\\x07]\n"


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(CorruptFileError("It is broken."), debug=True) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_bug_says_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(ZeroDivisionError("division by zero")) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: unexpected ZeroDivisionError: division by zero")
    assert "--debug" in err


def test_operating_system_errors_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(PermissionError(13, "Permission denied", "out.csv")) == 1
    assert "out.csv" in capsys.readouterr().err


def test_usage_errors_pass_through() -> None:
    with pytest.raises(typer.BadParameter), report_errors():
        raise typer.BadParameter("no")


def test_warnings_are_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    with report_errors():
        warnings.warn("a block was skipped", HoodieWarning, stacklevel=1)
        warnings.warn("a block was skipped", HoodieWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: a block was skipped\n" * 2
