"""The one Java session of the tests in this folder, and the tables they start from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from integration.java_hudi.environment import JavaHudi, JavaHudiMissingError, find_or_make
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import Kind, Lake, make_row

_HERE = Path(__file__).parent
_QUICK = (
    "test_we_remove_what_java_removes[v9-part-mdt]",
    "test_java_reads_our_changes[v9-part-mdt-cow-data_before]",
    "test_we_schedule_and_run[v9-part-mdt]",
    "test_we_schedule_and_run[v6-part-mdt]",
    "test_java_writes_while_ours_is_pending_and_we_run[v9-part-mdt]",
    "test_we_clean_and_java_goes_on[v9-part-mdt]",
    "test_we_cluster_and_java_goes_on[v9-part-mdt]",
    "test_both_go_on_after_a_change_of_version[v6-part-mdt-to-9-ours]",
    "test_java_plans_and_we_cluster[v6-part-mdt-cow]",
    "test_a_lock_file_of_ours_keeps_java_out_and_javas_keeps_us_out[v9-part-mdt]",
)
_QUICK_WRITES = ("what_we_wrote[v9-part-mdt]", "buckets_are_javas[v9-part-mdt]")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here: `make test` runs them apart, so that they share the session, and leaves out the slow ones.

    Each takes some ten seconds. `make java` runs all.
    """
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.java)
            item.add_marker(pytest.mark.timeout(1200))  # many steps of Java each; a busy machine takes its time
            chosen = _QUICK_WRITES if item.path.name == "test_writes.py" else _QUICK
            if not any(name in item.nodeid for name in chosen):
                item.add_marker(pytest.mark.slow)


def find_environment() -> JavaHudi:
    """Return where Java Hudi runs; without it the test is skipped, and fails in CI."""
    try:
        return find_or_make()
    except JavaHudiMissingError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))  # a green run must not mean that Java was left out
        pytest.skip(f"NOT TESTED: {missing}")


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaSession]:
    """Real Java Hudi 1.2.0; one process for all tests."""
    with JavaSession(find_environment(), tmp_path_factory.mktemp("java")) as session:
        yield session


@pytest.fixture(scope="session")
def templates(java: JavaSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], Lake]:
    """``templates(kind)``: a table that Java wrote, with inserts, updates, deletes; made once, not to be changed."""
    folder = tmp_path_factory.mktemp("templates")

    @cache
    def made(kind: Kind) -> Lake:
        lake = Lake(java, folder / str(kind), kind)
        lake.write([make_row(number) for number in range(24)], "insert", mode="overwrite")
        lake.change(2)
        lake.change(3)
        return lake

    return made


@pytest.fixture
def lake(templates: Callable[[Kind], Lake], tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """A table of the kind that the test is parametrised with, to do with as one likes."""
    return templates(request.param).copied(tmp_path / "table")
