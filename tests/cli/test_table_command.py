"""What a subcommand about one table is given, and what typer sees of it."""

from __future__ import annotations

import inspect
from typing import Annotated

import pytest
import typer

from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.errors import InvalidQueryError


def test_the_common_options_stand_behind_the_own_ones() -> None:
    @table_command("option", "timezone")
    def act(command: TableCommand, dry_run: Annotated[bool, typer.Option()] = False) -> None: ...

    names = ["table", "dry_run", "option", "timezone", "storage_option", "endpoint_url", "as_json", "debug"]
    assert list(inspect.signature(act).parameters) == names


def test_a_subcommand_gets_the_options_parsed_and_without_secrets_in_its_repr() -> None:
    seen = []

    @table_command("option")
    def act(command: TableCommand) -> None:
        seen.append(command)

    act("t", option=["a=b"], storage_option=["secret=hunter2"], endpoint_url="http://x", as_json=True, debug=False)
    stored = {"secret": "hunter2", "client_kwargs": {"endpoint_url": "http://x"}}
    assert seen == [TableCommand("t", True, None, {"a": "b"}, stored)]
    assert "hunter2" not in repr(seen)


def test_an_error_ends_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    @table_command()
    def act(command: TableCommand) -> None:
        raise InvalidQueryError("No such thing.")

    with pytest.raises(typer.Exit) as caught:
        act("t", storage_option=None, endpoint_url=None, as_json=False, debug=False)
    assert caught.value.exit_code == 1
    assert "No such thing." in capsys.readouterr().err
