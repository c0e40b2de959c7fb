"""The pages that index options, errors and features say what the code says."""

from __future__ import annotations

import re
from typing import Any

import hoodie_py
from hoodie_py import HoodieError, HoodieWarning
from hoodie_py.options import clustering, indexes, log_compaction, read, source, sync, undone, write
from hoodie_py.options.check import list_passed_over
from hoodie_py.options.parse import Choice, Option
from tests.corpus import ROOT

DOCS = ROOT / "docs"
ROW = re.compile(r"^\| `([\w.]+)`(?: \(`([\w.`, ]+)`\))? \| (?:`([^`]*)`)? *\|", re.MULTILINE)
OLDER_PREFIX = "hoodie.deltastreamer."
DECLARED = (
    *read.OPTIONS, *write.OPTIONS, *indexes.OPTIONS, *clustering.OPTIONS, *log_compaction.OPTIONS,
    *source.OPTIONS, *source.OF_NEW_TABLES, *sync.OPTIONS,
)  # fmt: skip
NOT_FIXED = {"hoodie.parquet.compression.codec"}  # the table's


def find_default(option: Option) -> str:
    value: Any = getattr(option, "default", None)
    if isinstance(option, Choice) and option not in NOT_FIXED:
        value = option.choices[0]
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_every_option_has_a_line_with_its_default() -> None:
    text, _, rest = (DOCS / "options.md").read_text().partition("## Options of Java Hudi that are not done")
    rest, _, silent = rest.partition("## Options of Java Hudi that have nothing to do here")
    shown = {name: default for name, _, default in ROW.findall(text)}
    assert len(shown) == len(ROW.findall(text))
    declared = {str(option): option for option in DECLARED if not option.startswith(OLDER_PREFIX)}
    defaults = {name: find_default(option) for name, option in declared.items()}
    lacking = {name: default for name, default in defaults.items() if shown.get(name) != default}
    assert not lacking, "docs/options.md needs these lines, with these defaults"
    assert shown.keys() == declared.keys()
    older = {alias for _, aliases, _ in ROW.findall(text) for alias in re.findall(r"[\w.]+", aliases)}
    assert older == {alias for option in declared.values() for alias in option.aliases}
    missing = {
        str(each.option): "error" if each.refused else "warning"
        for each in (*undone.OF_READS, *undone.OF_WRITES)
        if str(each.option) not in declared
    }
    assert dict(re.findall(r"^\| `([\w.]+)` \|.*\| (error|warning) \|$", rest, re.MULTILINE)) == missing
    groups = re.findall(r"^\*\*(.*)\*\*\n\n((?:`.*\n)+)", silent, re.MULTILINE)
    assert {name: reason for reason, names in groups for name in re.findall(r"`([^`]+)`", names)} == list_passed_over()


def test_every_error_has_a_line() -> None:
    kinds = {name: getattr(hoodie_py, name) for name in hoodie_py.__all__ if name.endswith(("Error", "Warning"))}
    assert all(issubclass(kind, HoodieError | HoodieWarning) for kind in kinds.values())
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(kinds.keys() - {"HoodieError", "HoodieWarning"})


def test_every_feature_names_a_test_that_exists() -> None:
    page = (DOCS / "features.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| feature", "|---"))]
    assert len(rows) > 40
    lacking = []
    for row in rows:
        tests = re.findall(r"`([\w/]+)::(\w+)`", row)
        lacking += [] if tests else [row]
        for path, function in tests:
            file = ROOT / f"{path}.py"
            found = file.is_file() and re.search(rf"^ *def {function}\(", file.read_text(), re.MULTILINE)
            lacking += [] if found else [f"{path}::{function}"]
    assert not lacking
