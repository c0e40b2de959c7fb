"""Reference tables: written by Java Hudi, each with the answers that Java Hudi gave.

A folder per table: ``table.zip``, ``case.json`` (how it was made, the queries asked of it) and ``expected/*.parquet``.
A choice of them lies in tests/data/corpus; where the whole collection lies beside the checkout, it is used instead.
"""

from __future__ import annotations

import json
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.bootstrap import move_sources

ROOT = Path(__file__).resolve().parent.parent
PACKAGED = ROOT / "tests" / "data" / "corpus"
INDEXED = ROOT / "tests" / "data" / "indexed"
WHOLE = ROOT.parent / "shared" / "corpus"
REPORTS = ROOT.parent / "shared" / "reports"  # tables of other writers and of public bug reports


@cache
def corpus_names() -> tuple[str, ...]:
    """Names of all reference tables at hand, sorted."""
    return tuple(sorted({case.parent.name for place in (WHOLE, PACKAGED) for case in place.glob("*/case.json")}))


@cache
def packaged_names() -> tuple[str, ...]:
    """Names of the reference tables in tests/data, sorted."""
    return tuple(sorted(case.parent.name for case in PACKAGED.glob("*/case.json")))


@cache
def report_names() -> tuple[str, ...]:
    """Names of the tables of other writers that are not packaged, sorted; none where they are not at hand."""
    return tuple(sorted({case.parent.name for case in REPORTS.glob("*/case.json")} - {*corpus_names()}))


def case_folder(name: str) -> Path:
    """The packed folder of a reference table; skips the test where it is not at hand."""
    for place in (WHOLE, PACKAGED, REPORTS):
        if (place / name / "case.json").is_file():
            return place / name
    pytest.skip(f"NOT TESTED: reference table {name} is neither in tests/data/corpus nor in {WHOLE}")


@cache
def load_case(name: str) -> dict[str, Any]:
    """The table's case.json."""
    return json.loads((case_folder(name) / "case.json").read_text())


def unpack(name: str, into: Path) -> Path:
    """Unpack a reference table below ``into`` with read-only files and return the table's folder.

    Tables that name a folder beside them by its absolute path get the new one.
    """
    with zipfile.ZipFile(case_folder(name) / "table.zip") as archive:
        archive.extractall(into)
    case = load_case(name)
    if case.get("extra_folders"):
        move_sources(into / case["name"], case["original_path"], str(into))
    for path in into.rglob("*"):
        if path.is_file():
            path.chmod(0o444)
    inner = into / case["name"]
    return inner if inner.is_dir() else into


def unpack_indexed(name: str, into: Path) -> Path:
    """Unpack one of the tables with all of Java's indexes into a folder, and return it."""
    with tarfile.open(INDEXED / f"{name}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into
