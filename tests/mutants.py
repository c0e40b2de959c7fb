"""Plant faults in the modules that hold rules, and tell which of them no mirrored test notices.

    python -m tests.mutants [--minutes 60] [--seed 1] [--only conflicts] [--python .venv/bin/python]

cosmic-ray makes the faults, one at a time, in a copy of the checkout. All tests of a module run for each fault of it; a
fault by which they all pass has survived, and is printed. Not every survivor wants a test: a fault may change nothing
that anybody can see. The order is drawn by lot, so that a part of the faults says something about all of them.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cosmic_ray.commands.init import _all_work_items  # there is no public name for all faults of a module
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_item import TestOutcome, WorkItem, WorkResult

ROOT = Path(__file__).parents[1]
LONGEST = 300.0  # seconds for the tests of one fault: some faults never end
FOLDERS = ("hoodie_py", "storage", "tests", "integration", "conftest.py", "pyproject.toml", "README.md", "docs")

_WRITER, _TABLE = "tests/writer", "tests/table"
_CLEAN_PLAN = f"{_WRITER}/services/test_clean_plan.py"
_CONFLICTS = (f"{_WRITER}/commit/test_conflicts.py", f"{_WRITER}/commit/test_non_blocking.py")
RULES: dict[str, tuple[str, ...]] = {
    "hoodie_py/writer/commit/conflicts.py": _CONFLICTS,
    "hoodie_py/writer/savepoint/restore_plan.py": (f"{_WRITER}/savepoint",),
    "hoodie_py/writer/savepoint/restore.py": (f"{_WRITER}/savepoint", f"{_WRITER}/transaction/test_lost_lock.py"),
    "hoodie_py/writer/transaction/second_look.py": (f"{_WRITER}/transaction/test_second_look.py",),
    "hoodie_py/writer/transaction/pending.py": (
        f"{_WRITER}/transaction/test_pending.py", _CLEAN_PLAN, f"{_WRITER}/savepoint",
    ),
    "hoodie_py/writer/services/clean_plan.py": (f"{_WRITER}/services/test_clean.py", _CLEAN_PLAN),
    "hoodie_py/writer/archival/choice.py": (f"{_WRITER}/archival/test_choice.py",),
    "hoodie_py/writer/archival/archive.py": (f"{_WRITER}/archival/test_late_files.py",),
    "hoodie_py/writer/lock/heartbeat.py": (f"{_WRITER}/lock/test_heartbeat.py", f"{_WRITER}/test_write_heartbeats.py"),
    "hoodie_py/table/incremental/commit_range.py": (f"{_TABLE}/incremental/test_commit_range.py",),
    "hoodie_py/table/changes/plan.py": (f"{_TABLE}/changes/test_plan.py", f"{_TABLE}/changes/test_query.py"),
    "hoodie_py/table/view/visibility.py": (f"{_TABLE}/view",),
    "hoodie_py/reader/record/ordering.py": ("tests/reader/record",),
}  # fmt: skip
"""The modules that hold rules, and the tests that should notice a fault in each."""


def list_faults(module: str) -> Iterator[WorkItem]:
    """Yield the faults of a module that may change what it does: none in annotations and decorators."""
    tree = ast.parse(Path(module).read_text())
    passive = [node for each in ast.walk(tree) for node in _list_passive(each)]
    spans = [((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)) for node in passive]
    for item in _all_work_items([Path(module)], {}):
        start = item.mutations[0].start_pos
        if not any(first <= start < last for first, last in spans):
            yield item


def _list_passive(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield from node.decorator_list
    if isinstance(node, ast.FunctionDef) and node.returns is not None:
        yield node.returns
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield node.annotation


def copy_checkout(into: Path) -> None:
    """Copy the files that git tracks and that tests need: a fault must never stand in the checkout."""
    listed = subprocess.run(["git", "ls-files", "-z", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())


def plant(item: WorkItem, command: str) -> WorkResult:
    """Run the tests with one fault."""
    found: WorkResult = mutate_and_test(item.mutations, command, LONGEST)
    return found


def make_command(python: str, module: str) -> str:
    """Return the command that runs a module's tests up to the first that fails."""
    chosen = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not spark and not java and not thorough"]
    return shlex.join([python, "-m", "pytest", *chosen, *RULES[module]])


def plant_all(faults: Sequence[tuple[str, WorkItem]], python: str, until: float) -> Counter[tuple[str, bool]]:
    """Plant faults until a time of the monotonic clock; count by module and whether they survived, and print those."""
    counts: Counter[tuple[str, bool]] = Counter()
    for module, item in faults:
        if time.monotonic() > until:
            break
        result = plant(item, make_command(python, module))
        survived = result.test_outcome is TestOutcome.SURVIVED
        counts[module, survived] += 1
        if survived:
            print(result.diff, flush=True)
    return counts


def main(given: Sequence[str]) -> int:
    """Plant faults until the time is up, print the survivors, and return 0: they are for a person to read."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Plant faults in rules.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="modules whose path has this text")
    parser.add_argument(
        "--python", default=str(ROOT / ".venv/bin/python"), help="an interpreter that has the tests' libraries"
    )
    asked = parser.parse_args(given)
    until = time.monotonic() + asked.minutes * 60
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_checkout(Path(folder))
        os.chdir(folder)
        modules = [module for module in RULES if asked.only in module]
        for module in modules:
            if subprocess.run(
                shlex.split(make_command(asked.python, module)), capture_output=True, check=False
            ).returncode:
                print(f"The tests of {module} fail without a fault.", file=sys.stderr)
                return 2
        faults = [(module, item) for module in modules for item in list_faults(module)]
        random.Random(asked.seed).shuffle(faults)
        counts = plant_all(faults, asked.python, until)
        os.chdir(ROOT)
    for module in modules:
        noticed, missed = counts[module, False], counts[module, True]
        print(f"{module:<50} {noticed + missed:5} planted {missed:5} survived")
    survivors = sum(count for (_, survived), count in counts.items() if survived)
    print(f"{counts.total()} of {len(faults)} faults were planted, {survivors} survived.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
