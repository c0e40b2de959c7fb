"""The whole command: fast help, exit statuses, documentation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from hoodie_py import __version__
from hoodie_py.cli.app import app
from tests.corpus import ROOT

GROUP = typer.main.get_command(app)
COMMANDS = dict(GROUP.commands)
TABLE_COMMANDS = ("show", "timeline", "slices", "read")


@pytest.mark.smoke
@pytest.mark.parametrize("arguments", [["--help"], ["read", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import json, sys\n"
        "from hoodie_py.cli import main\n"
        f"sys.argv = ['hoodie', *{arguments!r}]\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(json.dumps([m for m in sys.modules if '.' not in m]), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"pyarrow", "numpy", "pyspark", "pandas", "fsspec", "s3fs", "fastavro"}
    assert heavy & set(json.loads(done.stderr.splitlines()[-1])) == set()


def test_version(hoodie) -> None:
    assert hoodie("--version").stdout.strip() == f"hoodie_py {__version__}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    common, *sections = re.split(r"^## hoodie ", page, flags=re.MULTILINE)
    section = next((each for each in sections if each.split("\n")[0] == name), None)
    assert section is not None
    options = [option for p in COMMANDS[name].params for option in p.opts + p.secondary_opts if option.startswith("--")]
    undocumented = [o for o in options if f"`{o}" not in section + common]
    assert undocumented in ([], ["--help"], ["--filter"], ["--filter", "--help"])


def test_documented_commands_exist() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert set(re.findall(r"^## hoodie ([\w-]+)", page, flags=re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_reaches_other_stores_and_debugs(name: str) -> None:
    options = {option for p in COMMANDS[name].params for option in p.opts}
    opens_none = name == "tables"  # it only lists names
    assert ({"--debug"} if opens_none else {"--storage-option", "--endpoint-url", "--debug"}) <= options


@pytest.mark.parametrize("name", TABLE_COMMANDS)
def test_missing_table_is_status_1_with_one_line(hoodie, tmp_path: Path, name: str) -> None:
    done = hoodie(name, tmp_path / "nothing", status=1)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "hoodie.properties" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["read"],
        ["read", "table", "--no-such-option"],
        ["read", "table", "--limit", "-1"],
        ["read", "table", "--limit", "many"],
        ["read", "table", "--format", "xml"],
        ["read", "table", "--format", "csv", "--json"],
        ["read", "table", "--query-type", "incremental"],
        ["show", "table", "--storage-option", "novalue"],
        ["log"],
    ],
)
def test_wrong_usage_is_status_2(hoodie, arguments: list[str]) -> None:
    done = hoodie(*arguments, status=2)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_no_arguments_prints_help(hoodie) -> None:
    assert "timeline" in hoodie(status=2).output


@pytest.mark.parametrize("name", TABLE_COMMANDS)
def test_credentials_are_never_printed(hoodie, tmp_path: Path, name: str) -> None:
    secrets = ("AKIDONTTELL", "hunter2hunter2", "tokentoken")
    options = [f"key={secrets[0]}", f"secret={secrets[1]}", f"token={secrets[2]}"]
    flags = [part for option in options for part in ("--storage-option", option)]
    endpoint = ("--endpoint-url", f"http://user:{secrets[1]}@127.0.0.1:1")
    done = hoodie(name, "s3://bucket/table", *flags, *endpoint, "--debug", status=1)
    assert [secret for secret in secrets if secret in done.output + done.stderr] == []


def test_one_bad_storage_option_does_not_print_its_value(hoodie) -> None:
    done = hoodie("show", "table", "--storage-option", "client_kwargs={hunter2", status=2)
    assert "hunter2" not in done.output + done.stderr
