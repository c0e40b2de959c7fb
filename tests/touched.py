"""Run the tests that a change touches: its own, those that mirror a changed module, and those that import it.

    python -m tests.touched [--since REVISION] [--seconds 75] [--list]

The change is what differs from a revision, by default from the last commit, or, where nothing does, what the last
commit changed. Tests that need a JVM are left out. The nearest tests come first, and when the time is up the others are
left out as well: this is the inner loop, not the proof.
"""

from __future__ import annotations

import argparse
import ast
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MIRRORS = {"hoodie_py": "tests", "storage/hoodie_storage": "tests/storage"}
_TESTS = ("tests", "integration")
_NONE_SELECTED = 5  # pytest's status


def find_changed(since: str | None) -> list[str]:
    """Return the Python files that differ from a revision, and new ones that git does not ignore."""
    new = _ask_git("ls-files", "--others", "--exclude-standard")
    found = [*_ask_git("diff", "--name-only", since or "HEAD"), *new]
    if not found and since is None:
        found = _ask_git("diff", "--name-only", "HEAD~1")
    return [name for name in dict.fromkeys(found) if name.endswith(".py") and (ROOT / name).is_file()]


def choose_tests(changed: Sequence[str], imports: dict[str, frozenset[str]]) -> list[str]:
    """Return the test files of a change, the nearest first. ``imports`` are the modules that each test file imports."""
    tests = [name for name in changed if _is_test(name)]
    mirrors = [each for name in changed for each in _list_mirrors(name, imports)]
    modules = {_to_module(name) for name in changed}
    importers = [name for name in sorted(imports) if imports[name] & modules]
    helpers = {_to_module(name) for name in importers if not _is_test(name)}  # of the tests
    further = [name for name in sorted(imports) if imports[name] & helpers]
    return [name for name in dict.fromkeys([*tests, *mirrors, *importers, *further]) if _is_test(name)]


def read_imports() -> dict[str, frozenset[str]]:
    """Return the modules that each Python file of the tests imports, also as attributes of their packages."""
    files = [path for place in _TESTS for path in (ROOT / place).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): frozenset(_list_imports(path)) for path in files}


def _list_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _list_mirrors(name: str, imports: dict[str, frozenset[str]]) -> list[str]:
    path = Path(name)
    for source, place in _MIRRORS.items():
        if path.is_relative_to(source):
            mirror = Path(place, path.relative_to(source).parent, f"test_{path.name}").as_posix()
            return [mirror] if mirror in imports else []
    return []


def _is_test(name: str) -> bool:
    return name.startswith(_TESTS) and Path(name).name.startswith("test_")


def _to_module(name: str) -> str:
    return name.removeprefix("storage/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _ask_git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def run_tests(files: Sequence[str], seconds: float) -> int:
    """Run test files in their order until one fails or the time is up; return pytest's status, 0 if time was up."""
    chosen = ("-x", "-q", "-m", "not spark and not java and not thorough")
    process = subprocess.Popen([sys.executable, "-m", "pytest", *chosen, *files], cwd=ROOT)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest says then what has run
        process.wait()
        print(f"{seconds:.0f} seconds are over: tests further away were not run. `make test` runs all.")
        return 0
    return 0 if status == _NONE_SELECTED else status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests of the change, or list their files."""
    parser = argparse.ArgumentParser(prog="python -m tests.touched", description="Run the tests that a change touches.")
    parser.add_argument("--since", metavar="REVISION", help="what the change is a change of; the last commit")
    parser.add_argument("--seconds", type=float, default=75.0, help="most time for the tests; 75")
    parser.add_argument("--list", action="store_true", help="print the test files instead of running them")
    given = parser.parse_args(arguments)
    files = choose_tests(find_changed(given.since), read_imports())
    if given.list or not files:
        print("\n".join(files) or "No test is near the change.")
        return 0
    print(f"{len(files)} test files are near the change.", flush=True)
    return run_tests(files, given.seconds)


if __name__ == "__main__":
    raise SystemExit(main())
