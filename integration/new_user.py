"""The start page and the guides as a new user follows them: each in a fresh environment, in an empty folder.

    python -m integration.new_user                        all of them
    python -m integration.new_user index writing --wheel dist/hoodie_py-0.1.0-py3-none-any.whl

Every command and all code of a page runs as it stands there, with the installed package, and has to print what the page
shows; instants, ids and times may differ. The tests of docs/ run the same pages faster, but from the sources.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
GUIDES = {
    "index": "",
    "quickstart": "pandas,polars,duckdb",
    "writing": "pandas",
    "incremental": "pandas",
    "compaction": "",
    "clustering": "",
    "services": "",
    "merging": "",
    "writing-a-merger": "testing",
    "spark": "spark",
}
"""Pages, and the extras that they tell the user to install."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CHANGING = (  # what differs from one table to the next
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{20,}(?:-\d+)?"), "ID"),
    (re.compile(r"\b\d{17}\b"), "INSTANT"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*Z?"), "TIME"),
    (re.compile(r"\b\d+(?:\.\d+)? (s|ms|bytes|kB|KB|MB)\b"), r"N \1"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"[─━-]{2,}"), "-"),
)
_SPARK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
"""


def follow(page: str, package: str, extras: str) -> list[str]:
    """Install what a page needs in a fresh environment and follow the page; return what was not as it says."""
    with tempfile.TemporaryDirectory(prefix=f"{page}-") as scratch:
        folder = Path(scratch)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        wanted = f"{package}[{extras}]" if extras else package
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, wanted], check=True)
        empty = folder / "empty"
        empty.mkdir()
        path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG", "TMPDIR") if name in os.environ}
        # -P: the folder of this file is not looked in for modules, so that nothing but the package is found.
        command = [str(python), "-P", str(Path(__file__).resolve()), "--follow", str(ROOT / "docs" / f"{page}.md")]
        done = subprocess.run(
            command,
            cwd=empty,
            env={**kept, "PATH": path, "COLUMNS": "100"},
            text=True,
            capture_output=True,
            check=False,
        )
    said = [line for line in done.stdout.splitlines() if line.strip()]
    return said if done.returncode == 0 else [*said, *done.stderr.splitlines()[-12:], f"status {done.returncode}"]


def follow_here(page: Path) -> list[str]:
    """Run the blocks of a page in this process and folder; return those that print something else than it shows."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    found = [(each.group(1), each.group(2), text.count("\n", 0, each.start(2)) + 1) for each in FENCE.finditer(text)]
    if any(language == "python" and re.search(r"\bspark\b", code) for language, code, _ in found):
        exec(_SPARK, names)
    printed, wrong = "", []
    for language, code, line in found:
        if language == "python":
            printed = _run_python(code, f"{page.name}:{line}", names)
        elif language == "bash":
            printed = subprocess.run(
                ["bash", "-e", "-c", code], check=True, text=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
            ).stdout
        elif language == "text" and _comparable(printed) != _comparable(code):
            wrong.append(f"{page.name}:{line} shows\n{code}but this was printed:\n{printed}")
    return wrong


def _run_python(code: str, where: str, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, where, "exec"), names)
    return printed.getvalue()


def _comparable(text: str) -> list[str]:
    """Return the lines of a text without what differs from one table to the next."""
    for pattern, put in _CHANGING:
        text = pattern.sub(put, text)
    return [line.strip() for line in text.strip().splitlines()]


def main(given: Sequence[str] | None = None) -> int:
    """Follow the pages; 1 if one of them is not true."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="*", help=f"of {', '.join(GUIDES)}; all without")
    parser.add_argument("--wheel", default=str(ROOT), help="what to install; default: the checkout")
    parser.add_argument("--follow", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if arguments.follow is not None:
        wrong = follow_here(arguments.follow)
        print("\n".join(wrong))
        return int(bool(wrong))
    if unknown := sorted({*arguments.page}.difference(GUIDES)):
        parser.error(f"there is no guide {', '.join(unknown)}")
    status = 0
    for page in arguments.page or GUIDES:
        began = time.monotonic()
        wrong = follow(page, arguments.wheel, GUIDES[page])
        print(f"{page}.md  {'NOT TRUE' if wrong else 'ok'}  {time.monotonic() - began:.0f} s", flush=True)
        for each in wrong:
            print(f"    {each}")
        status |= int(bool(wrong))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
