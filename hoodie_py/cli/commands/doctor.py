"""``hoodie doctor``: check the interpreter, packages, the Java that Spark would start and the store, and say what to
install.

Versions are compared with the bounds in this package's own metadata. Checks print nothing and raise nothing.
"""

from __future__ import annotations

import importlib
import operator
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from hoodie_py.cli.console import Column, build_table, make_stdout, print_json, report_errors, show_spinner
from hoodie_py.cli.options import AsJson, Debug, EndpointUrl, StorageOptions, parse_storage_options

OLDEST_JAVA = 17
HOW_TO_INSTALL = (
    f"Install Java {OLDEST_JAVA} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17) and set JAVA_HOME if it is not on the PATH."
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its command and its feature version, such as 17."""

    command: str
    version: int

    @property
    def is_new_enough(self) -> bool:
        """Whether Spark 4 runs on it."""
        return self.version >= OLDEST_JAVA


def find_java() -> Java | None:
    """Return the Java of JAVA_HOME, or the one on the PATH if that is not set; None if it does not start."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None:
        return None
    try:
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return None if said.returncode or version is None else Java(command, int(version.group(1)))


def find_missing_for_spark() -> str | None:
    """Return what to install before PySpark can run; None if it can run. Packages are not imported."""
    from importlib.util import find_spec

    absent = [name for name in ("pyspark", "pandas") if find_spec(name) is None]
    if absent:
        return f"PySpark needs {' and '.join(absent)}: pip install 'hoodie_py[spark]'"
    java = find_java()
    if java is None:
        return f"PySpark needs Java, and none was found. {HOW_TO_INSTALL}"
    if not java.is_new_enough:
        return f"PySpark needs Java {OLDEST_JAVA}, and {java.command} is Java {java.version}. {HOW_TO_INSTALL}"
    return None


DISTRIBUTION = "hoodie_py"
NEEDED = ("pyarrow", "numpy", "fastavro", "fsspec", "pyroaring")
OPTIONAL = {"pyspark": "spark", "pandas": "pandas", "s3fs": "s3", "polars": "polars", "duckdb": "duckdb"}
CLOUDS = {
    **dict.fromkeys(("gs", "gcs"), ("gcsfs", "gcs")),
    **dict.fromkeys(("abfs", "abfss", "az"), ("adlfs", "azure")),
}
OLDEST_PYTHON = (3, 11)
SECONDS_TO_ANSWER = 5.0


class Status(StrEnum):
    """Result of a check. The command fails only if a check is BROKEN."""

    OK = "ok"
    MISSING = "missing"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its result, and advice if something is missing or broken."""

    name: str
    status: Status
    found: str
    advice: str = ""


def run_checks(uri: str | None, options: Mapping[str, Any], endpoint_url: str | None) -> Iterator[Check]:
    """Yield the checks one by one; the store is checked only if an endpoint or a table is given."""
    yield check_python()
    for name in NEEDED:
        yield check_package(name, None)
    for name, usual in OPTIONAL.items():
        extra = "spark" if name == "pandas" and _is_installed("pyspark") else usual  # Spark takes fewer versions of it
        yield check_package(name, extra, needed=name == "s3fs" and (endpoint_url is not None or _is_s3(uri)))
    if (cloud := CLOUDS.get((uri or "").partition("://")[0])) is not None:
        yield check_package(*cloud, needed=True)
    yield check_java()
    if find_spec("pyspark") is not None:
        yield check_worker_python()
    if endpoint_url is not None:
        yield check_endpoint(endpoint_url)
    if uri is not None:
        yield check_table(uri, options)


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _is_s3(uri: str | None) -> bool:
    return uri is not None and uri.startswith(("s3://", "s3a://"))


def check_python() -> Check:
    """Check the interpreter's version."""
    found = sys.version.split()[0]
    if sys.version_info < OLDEST_PYTHON:
        return Check("Python", Status.BROKEN, found, f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed.")
    return Check("Python", Status.OK, found)


def check_package(name: str, extra: str | None, needed: bool = False) -> Check:
    """Check that a package is installed, has a version within the declared bounds, and can be imported.

    ``extra``: the extra of this distribution that installs it, None for a package that is always needed. ``needed``:
    whether the command's arguments need a package that is optional otherwise.
    """
    install = f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install --upgrade {DISTRIBUTION}"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        absent = Status.BROKEN if extra is None or needed else Status.MISSING
        return Check(name, absent, "not installed", install)
    wanted = read_declared_bounds(name, extra)
    if not is_within(version, wanted):
        return Check(name, Status.BROKEN, f"{version}, but {wanted} is needed", install)
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - a broken binary package may raise anything
        return Check(name, Status.BROKEN, f"{version} cannot be imported: {type(error).__name__}: {error}", install)
    return Check(name, Status.OK, version)


def read_declared_bounds(name: str, extra: str | None) -> str:
    """Return the version bounds (">=4.0.0,<4.4") for a package from this distribution's metadata; "" for none."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return ""
    for requirement in requirements:
        what, _, marker = requirement.partition(";")
        found = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^)]*)\)?", what)
        extras = re.findall(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        if found and found.group(1).lower() == name and extras == ([extra] if extra else []):
            return found.group(2).strip()
    return ""


def is_within(version: str, bounds: str) -> bool:
    """Whether a release is within bounds of the forms >=, >, <= and <; other forms are ignored."""
    compare: dict[str, Callable[[list[int], list[int]], bool]] = {
        ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
    }  # fmt: skip
    for sign, bound in re.findall(r"(>=|<=|>|<)\s*([0-9][0-9.]*)", bounds):
        left, right = _parse_version(version), _parse_version(bound)
        width = max(len(left), len(right))
        if not compare[sign](left + [0] * (width - len(left)), right + [0] * (width - len(right))):
            return False
    return True


def _parse_version(version: str) -> list[int]:
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return [int(part) for part in release.group().split(".")] if release else []


def check_java() -> Check:
    """Check that there is a Java for Spark. Nothing else needs Java."""
    java = find_java()
    if java is None:
        return Check("Java", Status.MISSING, "not found", HOW_TO_INSTALL)
    if not java.is_new_enough:
        return Check("Java", Status.MISSING, f"{java.version} ({java.command}), too old for Spark", HOW_TO_INSTALL)
    return Check("Java", Status.OK, f"{java.version} ({java.command})")


def check_worker_python() -> Check:
    """Check that the Python of Spark's workers on this machine can read tables."""
    from hoodie_py.spark.worker_python import find_worker_problem

    problem = find_worker_problem()
    if problem is None:
        return Check("Spark's Python", Status.OK, os.environ.get("PYSPARK_PYTHON") or "python3 of the PATH")
    what, _, remedy = problem.partition(". ")
    return Check("Spark's Python", Status.MISSING, what, remedy)


def check_endpoint(url: str) -> Check:
    """Check that an S3-compatible store answers. An HTTP error counts as an answer."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    shown = remove_credentials(url)
    if "://" not in url:
        url = f"http://{url}"
    if not url.startswith(("http://", "https://")):
        return Check("endpoint", Status.BROKEN, f"{shown} is no http(s) address", "Give it as http://host:port.")
    try:
        with urlopen(Request(url, method="HEAD"), timeout=SECONDS_TO_ANSWER) as answer:  # noqa: S310 - the scheme is checked
            status = answer.status
    except HTTPError as error:
        status = error.code
    except (OSError, URLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        return Check("endpoint", Status.BROKEN, f"{shown}: {reason}", "Is the server running, and the address right?")
    return Check("endpoint", Status.OK, f"{shown} answers ({status})")


def check_table(uri: str, options: Mapping[str, Any]) -> Check:
    """Check that a table can be opened with the storage options."""
    from hoodie_py.errors import HoodieError

    try:
        from hoodie_py import HoodieTable

        table = HoodieTable.open(uri, options)
    except HoodieError as error:
        return Check("table", Status.BROKEN, error.message, error.hint or "")
    except ImportError as error:
        return Check("table", Status.BROKEN, f"cannot be opened: {error}", "Repair the packages above first.")
    return Check("table", Status.OK, f"{table.config.name}, {table.config.table_type} version {table.config.version}")


def remove_credentials(url: str) -> str:
    """Return a URL without user name and password."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


MaybeTable = Annotated[
    str | None, typer.Argument(metavar="TABLE", help="A table to try to open, with the storage options given.")
]


def doctor(
    table: MaybeTable = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check Python, Java, Spark and storage; say what to install."""
    with report_errors(debug):
        with show_spinner("checking"):
            checks = list(run_checks(table, parse_storage_options(storage_option, endpoint_url), endpoint_url))
        if as_json:
            print_json([asdict(check) for check in checks])
        else:
            _print(checks)
        if any(check.status is Status.BROKEN for check in checks):
            raise typer.Exit(1)


def _print(checks: list[Check]) -> None:
    from rich.text import Text

    style = {Status.OK: "green", Status.MISSING: "yellow", Status.BROKEN: "bold red"}
    rows: list[list[str | Text]] = [
        [check.name, Text(check.status.value, style=style[check.status]), check.found] for check in checks
    ]
    console = make_stdout(100)
    console.print(build_table([Column("", style="bold", keep=True), Column("", keep=True), Column("found")], rows))
    advice = dict.fromkeys(f"{check.name}: {check.advice}" for check in checks if check.advice)
    for line in advice:
        console.print(Text(line))
    if any(check.status is Status.BROKEN for check in checks):
        console.print(Text("Something that is needed does not work.", style="bold red"))
    elif advice:
        console.print(Text("All that is needed works. What is missing is optional.", style="green"))
    else:
        console.print(Text("Everything works.", style="green"))
