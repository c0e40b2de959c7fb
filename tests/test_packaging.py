"""The wheel and an editable install hold what they must, no more, and work."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.corpus import ROOT

MODULES = ("hoodie_py", "hoodie_storage", "pyspark_hoodie")
BUILT_FROM = ("hoodie_py", "storage", "pyspark_hoodie.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a distribution is built from."""
    into = tmp_path_factory.mktemp("tree")
    for name in BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, into / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, into / name)
    (into / "tests").mkdir()
    (into / "tests" / "test_nothing.py").write_text('"""Must not be in a wheel."""\n')
    return into


def installed_packages() -> Path:
    """Where this interpreter's packages are."""
    return Path(pytest.__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    into = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)], cwd=tree, check=True)
    (path,) = into.glob("*.whl")
    assert path.name.startswith("hoodie_py-")
    assert path.name.endswith("-py3-none-any.whl")
    return zipfile.ZipFile(path)


def test_wheel_holds_the_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    top = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {
        "hoodie_py",
        "hoodie_storage",
        "pyspark_hoodie.py",
    }


def test_wheel_holds_every_source_file(wheel: zipfile.ZipFile, tree: Path) -> None:
    packages = [(tree, tree / "hoodie_py"), (tree / "storage", tree / "storage" / "hoodie_storage")]
    sources = {
        path.relative_to(root).as_posix() for root, package in packages for path in package.rglob("*") if path.is_file()
    }
    names = set(wheel.namelist())
    assert sources - names == set()
    assert {"hoodie_py/py.typed", "hoodie_storage/py.typed"} <= names


def test_wheel_has_licence_command_and_extras(wheel: zipfile.ZipFile) -> None:
    info = next(name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name)
    assert "Apache License" in wheel.read(f"{info}/licenses/LICENSE").decode()
    assert "hoodie = hoodie_py.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0"
    extras = {
        "all",
        "daft",
        "dask",
        "datafusion",
        "duckdb",
        "ibis",
        "lance",
        "otel",
        "pandas",
        "polars",
        "ray",
        "s3",
        "spark",
    }
    extras |= {"azure", "gcs", "glue", "hive", "testing"}
    assert set(metadata.get_all("Provides-Extra", [])) == extras


def test_version_is_the_project_s() -> None:
    import hoodie_py

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hoodie_py.__version__ == project["version"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text()


def test_links_of_the_readme_work_on_an_index_page() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert [link for link in links if not link.startswith("https://")] == []


def test_no_page_promises_a_package_index() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    promise = re.compile(r"pip install (-U |--upgrade )?hoodie_py\b(?!\[)")
    assert [page.name for page in pages if promise.search(page.read_text())] == []


@pytest.mark.slow
def test_editable_install_imports_from_the_tree(tree: Path, tmp_path: Path) -> None:
    home = tmp_path / "env"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (packages,) = home.glob("lib/python*/site-packages")
    # Dependencies, pip and hatchling come from here; a path entry does not activate this environment's own install.
    (packages / "borrowed.pth").write_text(f"{installed_packages()}\n")
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--editable",
        str(tree),
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # which would be there first
    done = subprocess.run(install, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    code = f"import {', '.join(MODULES)}; print(*(m.__file__ for m in ({', '.join(MODULES)})), sep='\\n')"
    run = subprocess.run([str(python), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, env=env)
    assert run.returncode == 0, run.stderr
    assert [Path(line) for line in run.stdout.split()] == [
        tree / "hoodie_py" / "__init__.py",
        tree / "storage" / "hoodie_storage" / "__init__.py",
        tree / "pyspark_hoodie.py",
    ]
    command = subprocess.run(
        [str(home / "bin" / "hoodie"), "--help"], cwd=tmp_path, capture_output=True, text=True, check=False, env=env
    )
    assert command.returncode == 0, command.stderr
    assert "demo" in command.stdout
