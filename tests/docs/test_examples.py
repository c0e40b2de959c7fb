"""Every public name has an example in its docstring, and the examples give what they say.

They run on the table that docs/reference.md makes, each on a copy of its own.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import shutil
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hoodie_py
import hoodie_py.spark
import hoodie_py.testing
from hoodie_py.testing import local_s3
from tests.corpus import ROOT
from tests.metastore.fake_metastore import FakeMetastore

MODULES = (hoodie_py, hoodie_py.spark, hoodie_py.testing)
WITH_METHODS = (hoodie_py.HoodieTable, hoodie_py.Scan)  # of these every public method has an example, too
MAKES_TABLE = re.compile(r"^## The table of the examples\n.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def find_docstrings() -> dict[str, str]:
    found = {}
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            is_definition = inspect.isclass(value) or inspect.isfunction(value)
            found[f"{module.__name__}.{name}"] = (value.__doc__ or "") if is_definition else find_text_below(name)
    for owner in WITH_METHODS:
        found |= {f"hoodie_py.{owner.__name__}.{name}": text for name, text in iterate_methods(owner)}
    return found


def find_text_below(name: str) -> str:
    """A constant's docstring is the text below it."""
    module = import_module(hoodie_py._HOMES[name])
    body = ast.parse(Path(str(module.__file__)).read_text()).body
    for statement, below in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
            assert isinstance(below, ast.Expr)
            return str(ast.literal_eval(below.value))
    raise AssertionError(name)


def iterate_methods(owner: type) -> Iterator[tuple[str, str]]:
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        if isinstance(value, classmethod | staticmethod | property):
            value = value.fget if isinstance(value, property) else value.__func__
        if not name.startswith("_") and (callable(value) or isinstance(value, cached_property)):
            yield name, value.__doc__ or ""


DOCSTRINGS = find_docstrings()


def cases() -> list[Any]:
    with_spark = re.compile(r">>> .*\bspark\b")
    return [
        pytest.param(name, marks=[pytest.mark.spark] if with_spark.search(text) else [], id=name)
        for name, text in DOCSTRINGS.items()
        if ">>>" in text
    ]


def test_every_public_name_has_an_example() -> None:
    lacking = [name for name, text in DOCSTRINGS.items() if not re.search(r"^ *Examples:\n +>>> ", text, re.MULTILINE)]
    assert not lacking, f"these need a section `Examples:` with `>>>` in their docstring: {', '.join(lacking)}"


@pytest.fixture(scope="session")
def trips_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    code = MAKES_TABLE.search((ROOT / "docs" / "reference.md").read_text())
    assert code is not None
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(code.group(1), {})
    return folder / "trips"


@pytest.mark.parametrize("name", cases())
def test_example_gives_what_it_says(
    name: str, trips_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    shutil.copytree(trips_folder, tmp_path / "trips")
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestParser().get_doctest(inspect.cleandoc(DOCSTRINGS[name]), {}, name, name, 0)
    owner = next(module for module in reversed(MODULES) if name.startswith(f"{module.__name__}."))
    names = {each: getattr(module, each) for module in {hoodie_py: 1, owner: 1} for each in module.__all__}
    names |= {"pa": import_module("pyarrow"), "trips": hoodie_py.HoodieTable.open("trips")}
    used = {word for example in found.examples for word in re.findall(r"\w+", example.source)}
    if "spark" in used:
        names["spark"] = request.getfixturevalue("spark")
    if "catalog" in used:
        names["catalog"] = hoodie_py.Catalog(FakeMetastore())
    with local_s3() if "s3" in used else pytest.MonkeyPatch.context() as s3:
        found.globs = names | {"s3": s3}
        said: list[str] = []
        doctest.DocTestRunner(optionflags=OPTIONS).run(found, out=said.append)
    assert not said, "".join(said)
