"""Fixtures for every test: reference tables, a Spark session, and how hypothesis behaves."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.corpus import load_case, unpack, unpack_indexed
from tests.watched_requests import Request, watching_requests

# Test machines are slow and shared: no deadline. CI repeats the same examples, other machines look for new ones.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

_OVER_CONNECT = os.environ.get("HOODIE_TEST_SPARK") == "connect"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suites below; they must be known before any folder's own conftest is."""
    parser.addoption("--merge-cases", metavar="FILE", help="file of merge cases for tests/reader (JSON lines)")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the Spark session: `make test` runs those apart, so that they share it. Leave out those
    that cannot run over Connect where the session does.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if _OVER_CONNECT and item.get_closest_marker("classic"):
            item.add_marker(pytest.mark.skip(reason="the Spark session is over Connect"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``corpus(name)``: the folder of a reference table, unpacked once; its files are read-only."""

    @cache
    def unpacked(name: str) -> Path:
        return unpack(name, tmp_path_factory.mktemp("corpus"))

    return unpacked


@pytest.fixture(scope="session")
def corpus_copy(corpus: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``corpus_copy(name)``: a fresh copy of a reference table for a test that changes files."""

    def copied(name: str) -> Path:
        into = tmp_path_factory.mktemp("copy") / name
        shutil.copytree(corpus(name), into, copy_function=shutil.copyfile)
        return into

    return copied


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``indexed(name)``: the folder of a table of tests/data/indexed, on which Java Hudi keeps all of its indexes;
    unpacked once, not to be changed.
    """

    @cache
    def unpacked(name: str) -> Path:
        return unpack_indexed(name, tmp_path_factory.mktemp("indexed") / name)

    return unpacked


@pytest.fixture(scope="session")
def corpus_case() -> Callable[[str], dict[str, Any]]:
    """``corpus_case(name)``: what is known about a reference table (its case.json)."""
    return load_case


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for control groups in place of the machine's, empty: ``membership`` and ``root``."""
    from hoodie_py.runtime import machine

    monkeypatch.setattr(machine, "_MEMBERSHIP", f"{tmp_path}/membership")
    monkeypatch.setattr(machine, "_CGROUP_ROOT", f"{tmp_path}/root")
    machine.find_memory_limit.cache_clear()
    yield tmp_path
    machine.find_memory_limit.cache_clear()


@pytest.fixture
def large_machine(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 64 GB and 8 cores without limits."""
    known = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (64 << 30) // 4096}
    real = os.sysconf
    monkeypatch.setattr(os, "sysconf", lambda name: known[name] if name in known else real(name))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.fixture
def no_mergers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No merger is registered, and what the test registers is forgotten after it."""
    from hoodie_py.reader.merge import registry

    monkeypatch.setattr(registry, "_registered", [])


@pytest.fixture
def requests_made() -> Iterator[list[Request]]:
    """All requests to stores while the test runs, in order. A test may clear the list."""
    made: list[Request] = []

    def note(request: Request) -> Any:
        made.append(request)
        return request.make()

    with watching_requests(note):
        yield made


@pytest.fixture(scope="session")
def java() -> int:
    """Feature version of a Java that Spark 4 can use."""
    from hoodie_py.cli.commands.doctor import OLDEST_JAVA, find_java

    found_java = find_java()
    if found_java is None or not found_java.is_new_enough:
        found = "none was found" if found_java is None else f"this is Java {found_java.version}"
        why = f"Spark needs Java {OLDEST_JAVA} or newer, {found}; install one and set JAVA_HOME"
        if os.environ.get("CI"):
            pytest.fail(why)  # a green run must not mean that Spark was left out
        pytest.skip(f"NOT TESTED: {why}")
    return found_java.version


@pytest.fixture(scope="session")
def spark(java: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark session with two cores; workers use this Python. HOODIE_TEST_SPARK=connect: a client of a Connect
    server of its own.
    """
    sql = pytest.importorskip(
        "pyspark.sql", reason="NOT TESTED: pyspark is not installed: pip install 'hoodie_py[spark]'"
    )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    root = str(Path(__file__).parent)
    here = [root, str(Path(root, "storage")), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in dict.fromkeys(here) if p)
    session = (
        sql.SparkSession.builder.master("local[2]")
        .appName("hoodie_py tests")
        .config("spark.api.mode", "connect" if _OVER_CONNECT else "classic")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    if not _OVER_CONNECT:
        session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
