"""Fixtures for the command line's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from hoodie_py.cli.app import app


@pytest.fixture
def hoodie() -> Callable[..., Any]:
    """``hoodie("read", table)`` runs a command; the result has exit_code, stdout and stderr."""

    def run(*arguments: object, status: int = 0, env: dict[str, str | None] | None = None) -> Any:
        # COLUMNS is the width of the terminal that the tests run in, if any; a command here has none unless it is said.
        done = CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": None, **(env or {})})
        assert done.exit_code == status, (arguments, done.exit_code, done.stdout, done.stderr)
        return done

    return run
