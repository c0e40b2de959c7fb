"""The wheel with each extra, installed by pip in a fresh environment of each Python, and used once.

    python -m integration.install_extras                            all extras on all Pythons, some two hours
    python -m integration.install_extras --extra polars --python 3.12 --wheel dist/hoodie_py-0.1.0-py3-none-any.whl

Each run installs, asks `pip check` and `hoodie doctor`, does what the extra is for (``extra_uses``), and measures the
size of what was installed and the processor time of the import. Pythons are looked for on the PATH and where pyenv and
uv keep theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from integration.extra_uses import USES
from integration.saved import save_json

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = tuple(
    found.group(1) for each in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", each)) is not None
)
ALONE, ALL = "", "all"
EXTRAS = (ALONE, *PROJECT["optional-dependencies"])
TABLES = {"table": "basic_mor_v9_part", "lance_table": "lance_types_mor_v9"}
LARGEST = 324_000_000
"""Bytes that the package may take without extras, with all that it needs."""
SLOWEST = 0.15
"""Seconds of processor time that importing HoodieTable may take beyond NumPy and pyarrow."""
SECONDS_TO_USE = 600
_TIMED_IMPORT = """
import time, numpy, pyarrow, pyarrow.compute, pyarrow.parquet
before = time.process_time()
import hoodie_py
hoodie_py.HoodieTable
print(time.process_time() - before)
"""
_CLOUDS = ("gcs", "azure")


@dataclass
class Run:
    """What an extra did on a Python: ``faults`` is empty where all of it works."""

    python: str
    extra: str
    seconds: float = 0.0
    bytes: int = 0
    import_seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "FAILED" if self.faults else "ok"
        about = f"{self.bytes / 1e6:7,.0f} MB  import {self.import_seconds:.2f} s  {self.seconds:4.0f} s"
        return f"{self.python:5} {self.extra or '(none)':11} {verdict:7} {about}{''.join(map(_indent, self.left_out))}"


def _indent(text: str) -> str:
    return f"\n    {text}"


def find_python(version: str) -> str | None:
    """Return the interpreter of a version; None where there is none."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    uv = Path.home() / ".local" / "share" / "uv" / "python"
    kept = [*home.glob(f"{version}.*/bin/python"), *uv.glob(f"cpython-{version}.*/bin/python{version}")]
    for candidate in [shutil.which(f"python{version}"), *map(str, sorted(kept, reverse=True))]:
        if candidate is not None and _version_of(candidate) == version:
            return candidate
    return None


def _version_of(python: str) -> str:
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, Any]]:
    """Run what the stores' and the catalogs' extras need, and say where it is; clouds without a server are missing."""
    from hoodie_py.testing import local_s3
    from integration.clouds import find_program, run_server
    from tests.metastore.thrift_metastore import run_metastore

    with ExitStack() as stack:
        s3 = stack.enter_context(local_s3())
        found: dict[str, Any] = {
            "s3": {"uri": s3.uri, "storage_options": dict(s3.storage_options)},
            "glue": s3.endpoint_url,  # moto plays all of AWS at one address
            "hive": stack.enter_context(run_metastore()).uri,
            "env": dict(s3.env),
        }
        for name in _CLOUDS:
            program = find_program(name)
            if program is not None:
                own = folder / name
                own.mkdir()
                cloud = stack.enter_context(run_server(name, program, own))
                found[name] = {"uri": cloud.uri, "storage_options": cloud.storage_options}
        yield found


class Environment:
    """A fresh environment with the wheel and an extra."""

    def __init__(self, python: str, folder: Path) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.python = folder / "bin" / "python"
        self._packages = next((folder / "lib").glob("python3*/site-packages"))
        self._before = self._count_bytes()
        self._empty = folder / "empty"
        self._empty.mkdir()

    def _count_bytes(self) -> int:
        """Return what files take on the disk."""
        return sum(path.lstat().st_blocks * 512 for path in self._packages.rglob("*"))

    @property
    def bytes(self) -> int:
        """What installed packages take on the disk, beyond pip."""
        return self._count_bytes() - self._before

    def install(self, wheel: str) -> None:
        """Install a wheel with its extra, and check that all requirements agree."""
        pip = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "install", wheel], self._empty, dict(os.environ))
        _run([*pip, "check"], self._empty, dict(os.environ))

    def run(self, *command: str, env: Mapping[str, str] | None = None) -> str:
        """Run a program of the environment in an empty folder, as a user without this checkout does."""
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG", "TMPDIR") if name in os.environ}
        path = os.pathsep.join([str(self.python.parent), os.environ["PATH"]])
        program = str(self.python.parent / command[0])
        return _run([program, *command[1:]], self._empty, {**kept, "PATH": path, **(env or {})})

    def import_seconds(self, rounds: int = 7) -> float:
        """Return processor seconds of importing HoodieTable beyond NumPy and pyarrow: the least of some processes."""
        return min(float(self.run("python", "-c", _TIMED_IMPORT)) for _ in range(rounds))


def _run(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    shown = " ".join(command[:4])
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=SECONDS_TO_USE
        )
    except subprocess.TimeoutExpired as error:
        raise FailedError(f"{shown} did not end within {SECONDS_TO_USE} s") from error
    if done.returncode:
        last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-12:]
        raise FailedError("\n    ".join([f"{shown} ended with {done.returncode}:", *last]))
    return done.stdout


class FailedError(Exception):
    """A command failed; the text has its last words."""


def try_extra(version: str, python: str, extra: str, wheel: Path, place: Mapping[str, Any]) -> Run:
    """Install an extra on a Python and use it; return what was found."""
    result, began = Run(version, extra), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="extra-") as scratch:
        try:
            environment = Environment(python, Path(scratch) / "env")
            environment.install(f"{wheel}[{extra}]" if extra else str(wheel))
        except (FailedError, subprocess.CalledProcessError) as error:
            result.faults.append(str(error))
            return result
        result.bytes = environment.bytes
        _use(environment, result, place)
        result.import_seconds = environment.import_seconds()
    if not extra and result.bytes > LARGEST:
        result.faults.append(f"{result.bytes / 1e6:.0f} MB are installed, more than {LARGEST / 1e6:.0f}")
    if result.import_seconds > SLOWEST:
        result.faults.append(f"the import takes {result.import_seconds:.2f} s, more than {SLOWEST}")
    result.seconds = time.monotonic() - began
    return result


def _use(environment: Environment, result: Run, place: Mapping[str, Any]) -> None:
    """Ask `hoodie doctor`, and do what the extra is for; note what fails, and what cannot be tried here."""
    steps = [each for each in USES if each] if result.extra == ALL else [result.extra]
    for step in list(steps):
        if step in _CLOUDS and step not in place:
            result.left_out.append(f"NOT TRIED: {step}, whose server `python -m integration.clouds` installs")
            steps.remove(step)
    given = {**place, "run": f"{result.extra or 'alone'}_{result.python.replace('.', '_')}"}
    for step in steps:
        try:
            file = str(ROOT / "integration" / "extra_uses.py")
            environment.run("python", "-P", file, step, json.dumps(given), env=place["env"])
        except FailedError as error:
            result.faults.append(f"{step or 'the package'}: {error}")
    try:
        environment.run("hoodie", "doctor", place["table"])
    except FailedError as error:
        result.faults.append(str(error))


def main(given: Sequence[str] | None = None) -> int:
    """Try what the command line asks for; 1 if something does not work, or a Python is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", choices=VERSIONS, help="only this version")
    parser.add_argument("--extra", action="append", choices=[each for each in EXTRAS if each], help="only this extra")
    parser.add_argument("--wheel", type=Path, help="default: the one in dist/, which `make wheel` builds")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    arguments = parser.parse_args(given)
    wheel = arguments.wheel or next(iter(sorted((ROOT / "dist").glob("*.whl"), reverse=True)), None)
    if wheel is None or not wheel.is_file():
        parser.error("there is no wheel: run `make wheel`")
    runs, missing = [], []
    with tempfile.TemporaryDirectory() as scratch, servers(Path(scratch)) as place:
        for name, table in TABLES.items():
            zipfile.ZipFile(ROOT / "tests" / "data" / "corpus" / table / "table.zip").extractall(scratch)
            place[name] = str(Path(scratch) / table)
        for version in arguments.python or VERSIONS:
            python = find_python(version)
            if python is None:
                missing.append(version)
                print(f"{version:5} NOT TRIED: there is no Python {version} here", flush=True)
                continue
            for extra in arguments.extra or EXTRAS:
                runs.append(try_extra(version, python, extra, wheel.resolve(), place))
                print(runs[-1], *runs[-1].faults, sep="\n    ", flush=True)
    if arguments.json is not None:
        save_json(arguments.json, [asdict(each) for each in runs])
    failed = [f"{each.python} {each.extra}" for each in runs if each.faults]
    print(f"{len(runs)} runs, {len(failed)} failed{': ' + ', '.join(failed) if failed else ''}")
    return int(bool(failed or missing))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
