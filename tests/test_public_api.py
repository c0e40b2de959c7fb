"""What `hoodie_py` offers, and that offering it costs nothing until it is used."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import hoodie_py


def typed_names() -> dict[str, str]:
    """Public names as a type checker sees them, each with its home."""
    tree = ast.parse(Path(hoodie_py.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        name.name: str(node.module) for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names
    }


def by_kind(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as ruff sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_all_is_sorted_and_is_what_type_checkers_see() -> None:
    assert hoodie_py.__all__ == sorted(typed_names(), key=by_kind)


@pytest.mark.parametrize(("name", "home"), sorted(typed_names().items()))
def test_every_name_is_there_and_documented(name: str, home: str) -> None:
    thing = getattr(hoodie_py, name)
    assert thing is getattr(import_module(home), name)
    if callable(thing):
        assert thing.__doc__


def test_every_name_is_listed() -> None:
    assert set(hoodie_py.__all__) <= set(dir(hoodie_py))


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        hoodie_py.no_such_name  # noqa: B018 - the access is the test


@pytest.mark.smoke
def test_import_loads_nothing_heavy() -> None:
    code = "import json, sys, hoodie_py; print(json.dumps([m for m in sys.modules if '.' not in m]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(run.stdout)) & {"pyarrow", "pyspark", "pandas", "s3fs", "typer", "moto"} == set()


PACKAGES = sorted(path.parent for path in Path(hoodie_py.__file__).parent.rglob("__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_no_module_has_the_name_of_an_export_of_its_package(package: Path) -> None:
    """An import of the module would replace the export: the package's attribute is then the module."""
    tree = ast.parse((package / "__init__.py").read_text())
    exports = [
        name
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    ]
    there = {path.stem for path in package.iterdir()}
    assert there & set(exports) == set()
