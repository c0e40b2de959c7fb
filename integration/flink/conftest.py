"""One process with Flink for the tests in this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.flink.environment import FlinkMissingError, find_or_fetch
from integration.flink.jobs import FlinkJobs

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here: `make java` runs them, `make test` does not."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.java)
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(1200))


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkJobs]:
    try:
        find_or_fetch()
    except FlinkMissingError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))  # a green run must not mean that Flink was left out
        pytest.skip(f"NOT TESTED: {missing}")
    with FlinkJobs(tmp_path_factory.mktemp("flink")) as jobs:
        yield jobs
