"""Rules about the source tree that no linter checks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoodie_py import errors
from tests.corpus import ROOT

PACKAGES = (ROOT / "hoodie_py", ROOT / "storage" / "hoodie_storage")
MOST_LINES = 500
VAGUE_NAMES = {"util", "utils", "common", "helper", "helpers", "misc"}
ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
# A property or option key of Hudi; hoodie.properties is the name of a file.
KEY = re.compile(r"hoodie\.(?!properties)[a-z]\S*")


def modules(*places: Path) -> list[Path]:
    return sorted(path for place in places for path in place.rglob("*.py"))


SOURCES = [*modules(*PACKAGES), ROOT / "pyspark_hoodie.py"]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def string_literals(tree: ast.Module) -> Iterator[ast.Constant]:
    """String constants that are not docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


@pytest.mark.parametrize("path", [*SOURCES, *modules(ROOT / "tests", ROOT / "integration")], ids=relative)
def test_module_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_module_opens_with_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_hudi_keys_are_written_in_formats_and_options_only(path: Path) -> None:
    if {ROOT / "hoodie_py" / "formats", ROOT / "hoodie_py" / "options"} & set(path.parents):
        return
    found = [
        f"line {node.lineno}: {node.value}"
        for node in string_literals(ast.parse(path.read_text()))
        if KEY.match(node.value)
    ]
    assert found == [], "use the names in hoodie_py.formats and hoodie_py.options"


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Messages of errors and warnings that begin and end with a text written there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ERRORS and node.args:
            message = node.args[0]
            if isinstance(message, ast.Constant) and isinstance(message.value, str):
                yield node.lineno, message.value
            if isinstance(message, ast.JoinedStr):
                yield node.lineno, "".join(v.value if isinstance(v, ast.Constant) else "{}" for v in message.values)


@pytest.mark.parametrize("path", modules(ROOT / "hoodie_py"), ids=relative)
def test_messages_are_sentences(path: Path) -> None:
    found = messages(ast.parse(path.read_text()))
    assert [(line, text) for line, text in found if text[:1].islower() or not text.endswith((".", "?", "{}"))] == []


def test_no_module_is_a_dumping_ground() -> None:
    assert [relative(path) for path in SOURCES if VAGUE_NAMES & set(re.split(r"[_/]", path.stem))] == []


@pytest.mark.parametrize("package", PACKAGES, ids=relative)
def test_package_is_typed(package: Path) -> None:
    assert (package / "py.typed").is_file()


def test_locked_requirements_have_hashes_and_name_no_index() -> None:
    for name in ("dev.txt", "minimum.txt"):
        text = (ROOT / "requirements" / name).read_text()
        pins = re.findall(r"(?m)^[A-Za-z0-9._-]+(?:\[[^\]]*\])?==\S+.*(?:\n    .*)*", text)
        assert len(pins) > 50
        assert [pin.split("==")[0] for pin in pins if "--hash=sha256:" not in pin] == []
        assert re.search(r"://|--(extra-)?index-url|--find-links", text) is None
