"""The reference page has every public name, once, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import hoodie_py
from hoodie_py import spark, testing

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference.md"


def test_every_public_name_is_described_once() -> None:
    documented = re.findall(r"^\| `(?:hoodie_py\.testing\.)?(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(documented) == sorted({*hoodie_py.__all__, *testing.__all__, "local_s3_server"})


def test_the_site_has_the_docstring_of_every_public_name() -> None:
    shown = [
        name
        for page in (DOCS / "api").glob("*.md")
        for name in re.findall(r"^::: (.*)$", page.read_text(), re.MULTILINE)
    ]
    wanted = [f"hoodie_py.{name}" for name in hoodie_py.__all__]
    wanted += [f"hoodie_py.spark.{name}" for name in spark.__all__]
    wanted += [f"hoodie_py.testing.{name}" for name in testing.__all__]
    assert sorted(shown) == sorted(wanted)


def test_the_site_has_every_page() -> None:
    named = re.findall(r"[\w/-]+\.md", (DOCS.parent / "mkdocs.yml").read_text())
    assert sorted(named) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
