"""The whole command: fast help, exit statuses, documentation, ``--log-level``."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from hoodie_py import HoodieTable, __version__
from hoodie_py.cli.app import app
from hoodie_storage.retry import RetryPolicy, call_with_retries
from tests.corpus import ROOT
from tests.writer.compaction_tables import QUICK, writable

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


PACKAGES = ("hoodie_py", "hoodie_storage")


@pytest.fixture(autouse=True)
def _loggers_as_they_were() -> Iterator[None]:
    yield
    for name in PACKAGES:
        logging.getLogger(name).handlers = []
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_importing_sets_up_nothing() -> None:
    code = f"import logging, hoodie_py\nprint([logging.getLogger(name).handlers for name in {PACKAGES}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[], []]"


def test_what_completes_and_what_is_undone_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie_py")
    table = HoodieTable.open(writable("basic_mor_v9_part", tmp_path))
    rows = table.scan(limit=1).to_arrow()
    done = table.upsert(rows.drop_columns([name for name in rows.column_names if name.startswith("_")]), QUICK)
    assert f"The deltacommit {done.instant} is complete" in caplog.text
    planned = table.schedule_compaction()
    assert planned is not None
    table.rollback(planned)
    assert f"compaction {planned} is gone" in caplog.text


def test_retries_are_told_without_what_the_store_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie_storage")
    failures = [ValueError("key=secret")]

    def ask() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert call_with_retries(ask, RetryPolicy(first_pause=0), lambda _: True) == "done"
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_the_command_shows_them_on_stderr(hoodie: Callable[..., Any], tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    result = hoodie("--log-level", "info", "compact", base)
    assert "hoodie_py.writer.transaction.commit_protocol: The commit" in result.stderr
    assert "commit_protocol" not in result.stdout


def test_a_level_that_does_not_exist_is_wrong_usage(hoodie: Callable[..., Any]) -> None:
    result = hoodie("--log-level", "loud", "tables", status=2)
    assert "'loud' is none of debug" in result.stderr
