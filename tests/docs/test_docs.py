"""The documentation is true: its code runs in order, page by page, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from hoodie_py import HoodieTable
from hoodie_py.cli.app import app
from hoodie_py.errors import MergeError
from tests.corpus import ROOT
from tests.testing.test_record_merger_tests import failing, suite_of

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
DEMO_TABLE = (
    ROOT / "tests" / "data" / "demo_table.zip"
)  # tests/cli/demo/test_demo.py sees to it that it is the demo's table
MAKES_IT = "hoodie demo --no-spark --no-compact --keep demo_table"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_METADATA = ROOT / "tests" / "data" / "corpus" / "mdt_files_mor_v9"  # rides/, which Java wrote
LINK = re.compile(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text and the line it starts at."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(m.group(1), m.group(2), text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


def uses_spark(page: Path) -> bool:
    return any(block.language == "python" and re.search(r"\bspark\b", block.text) for block in blocks(page))


def pages() -> list[Any]:
    with_code = [page for page in PAGES if blocks(page)]
    return [
        pytest.param(page, id=page.stem, marks=[pytest.mark.spark] if uses_spark(page) else []) for page in with_code
    ]


def test_the_merger_of_the_readme_passes_the_suite_that_the_pages_recommend() -> None:
    found = [block.text for block in blocks(ROOT / "README.md") if "class HighestPrice" in block.text]
    names: dict[str, Any] = {"__name__": "readme"}
    exec(found[0].partition("\ntable.scan")[0], names)
    schema = pa.schema([("ts", pa.int64()), ("price", pa.float64())])
    assert failing(suite_of(names["HighestPrice"], schema=schema)) == {}


@pytest.mark.parametrize("page", pages())
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    found = blocks(page)
    with zipfile.ZipFile(DEMO_TABLE) as packed:
        packed.extractall("demo_table")
    with zipfile.ZipFile(WITH_METADATA / "table.zip") as packed:
        packed.extractall()
    (tmp_path / WITH_METADATA.name).rename("rides")
    names: dict[str, Any] = {"__name__": "__main__"}
    if uses_spark(page):
        if any("readStream" in block.text for block in found):
            pytest.importorskip("pyspark.sql.streaming.datasource", reason="NOT TESTED: PySpark 4.2 or newer")
        names["spark"] = request.getfixturevalue("spark")
    printed = ""
    for block in found:
        if block.language == "python":
            printed = run_python(block, page, names)
        elif block.language == "bash":
            printed = run_commands(block)
        elif block.language == "text":
            assert trimmed(printed) == trimmed(block.text), f"{page.name}:{block.line}"
    if "spark" in names:  # other tests have the same session
        for view in names["spark"].catalog.listTables():
            names["spark"].catalog.dropTempView(view.name)


def run_python(block: Block, page: Path, names: dict[str, Any]) -> str:
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()


def run_commands(block: Block) -> str:
    printed = ""
    for line in block.text.splitlines():
        if line == MAKES_IT:  # a new one would have other instants and file names than the page shows
            continue
        command, *arguments = shlex.split(line)
        assert command == "hoodie", "only the hoodie command runs here"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, (line, done.stderr)
        printed += done.stdout
    return printed


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        linked = page.parent / target
        assert linked.is_file(), target
        headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, f"{target}#{anchor}"


NOT_YET = {
    "custom merge strategies, and payload classes": ("custom_first_wins_updates_mor_v8", MergeError),
}


@pytest.mark.parametrize("feature", NOT_YET)
def test_what_is_not_supported_is_said_and_is_an_error(feature: str, corpus) -> None:
    """When a feature arrives, it goes from the page's list, and from here."""
    assert f"- {feature}" in (DOCS / "index.md").read_text()
    name, error = NOT_YET[feature]
    with pytest.raises(error):
        HoodieTable.open(corpus(name)).scan().to_arrow()


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    assert [page.name for page in PAGES if page.name != "index.md" and f"({page.name})" not in index] == []
