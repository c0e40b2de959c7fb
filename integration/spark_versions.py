"""The Spark tests on every PySpark that is supported, classic and over Connect.

    python -m integration.spark_versions                          all versions, both ways
    python -m integration.spark_versions 4.0 --connect -- -k write

Each version gets an environment of its own beside the sources (``.venv-spark-4.0``): the locked packages, with the
newest patch of that PySpark. What does not work over Connect says so and is skipped there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("4.0", "4.1", "4.2", "4.3")
CLASSIC, CONNECT = "classic", "connect"
LOCKED = ROOT / "requirements" / "dev.txt"


def make_environment(version: str) -> Path:
    """Return the Python of a version's environment; make that where it is missing."""
    folder = ROOT / f".venv-spark-{version}"
    python, ready = folder / "bin" / "python", folder / ".ready"
    locked = make_constraints(LOCKED.read_text(encoding="utf-8"), version)
    if not ready.exists() or ready.read_text(encoding="utf-8") != locked:
        print(f"PySpark {version}: making {folder.name}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        wanted = folder / "wanted.txt"
        wanted.write_text(locked, encoding="utf-8")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(wanted)], check=True)
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
        ready.write_text(locked, encoding="utf-8")
    return python


def make_constraints(locked: str, version: str) -> str:
    """Return the locked packages without their hashes, with the newest patch of another PySpark."""
    bare = re.sub(r" *\\\n +--hash=\S+", "", locked)
    changed, count = re.subn(r"(?m)^pyspark==\S+", f"pyspark[connect]=={version}.*", bare)
    if count != 1:
        raise RuntimeError(f"{LOCKED.name} names PySpark {count} times, not once")
    return changed


def run_tests(python: Path, way: str, given: Sequence[str]) -> int:
    """Run the Spark tests with an environment, and return pytest's status."""
    environment = {**os.environ, "HOODIE_TEST_SPARK": way, "PYTHONPATH": os.pathsep.join([".", "storage"])}
    environment.pop("VIRTUAL_ENV", None)
    # Warnings of other versions are no errors here: each names what a later one changes.
    command = [str(python), "-m", "pytest", "-m", "spark", "-q", "-W", "default", "-p", "no:cacheprovider", *given]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(given: Sequence[str]) -> int:
    """Run what the command line asks for; 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="*", help=f"of {', '.join(VERSIONS)}; all without")
    parser.add_argument("--classic", action="store_true", help="only sessions in the process")
    parser.add_argument("--connect", action="store_true", help="only sessions over Connect")
    own, pytest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    arguments = parser.parse_args(list(own))
    if unknown := sorted({*arguments.version}.difference(VERSIONS)):
        parser.error(f"there is no supported PySpark {', '.join(unknown)}: {', '.join(VERSIONS)}")
    ways = [way for way in (CLASSIC, CONNECT) if getattr(arguments, way)] or [CLASSIC, CONNECT]
    status: dict[tuple[str, str], int] = {}
    for version in arguments.version or VERSIONS:
        python = make_environment(version)
        for way in ways:
            print(f"\n=== PySpark {version}, {way}", flush=True)
            status[version, way] = run_tests(python, way, pytest)
    print()
    for (version, way), code in status.items():
        print(f"PySpark {version} {way:8} {'ok' if code == 0 else f'FAILED ({code})'}")
    return int(any(status.values()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
