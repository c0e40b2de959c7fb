from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Iterator
from importlib import metadata

import pytest

from hoodie_py.cli.commands.doctor import (
    NEEDED,
    Status,
    check_endpoint,
    check_package,
    check_table,
    is_within,
    read_declared_bounds,
    run_checks,
)


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("4.3.0", ">=4.0.0,<4.4", True),
        ("4.4", "<4.4,>=4.0.0", False),
        ("4.4.0", "<4.4", False),
        ("3.5.9", ">=4.0.0", False),
        ("2.10.1", ">=2.9", True),
        ("3.0.0rc1", "<3", False),
        ("2", "<=2.0", True),
        ("2.0.1", ">2.0", True),
        ("1.0", "", True),
    ],
)
def test_bounds(version: str, bounds: str, expected: bool) -> None:
    assert is_within(version, bounds) is expected


def test_declared_bounds_are_those_of_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["pyarrow>=18.0.0", "pyspark[connect]<4.4,>=4.0.0; extra == 'spark'", "pandas>=2.2.3; extra == 'pandas'",
             "pandas<3,>=2.2.3; extra == 'spark'"]  # fmt: skip
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    assert read_declared_bounds("pyarrow", None) == ">=18.0.0"
    assert read_declared_bounds("pyspark", "spark") == "<4.4,>=4.0.0"
    assert read_declared_bounds("pandas", "spark") == "<3,>=2.2.3"
    assert read_declared_bounds("numpy", None) == ""


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed_is_there(name: str) -> None:
    assert check_package(name, None).status is Status.OK


def test_missing_packages_break_only_what_needs_them() -> None:
    assert check_package("no_such_package", None).status is Status.BROKEN
    optional = check_package("no_such_package", "s3")
    assert optional.status is Status.MISSING
    assert "hoodie_py[s3]" in optional.advice
    assert check_package("no_such_package", "s3", needed=True).status is Status.BROKEN


def test_old_and_broken_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: ["pyarrow>=999"])
    assert "999" in check_package("pyarrow", None).found
    monkeypatch.setattr(metadata, "requires", lambda name: [])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    broken = check_package("pyarrow", None)
    assert broken.status is Status.BROKEN
    assert "cannot be imported" in broken.found


@pytest.fixture
def refusing_server() -> Iterator[str]:
    """A server that answers every request with 403."""

    class Refuse(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with http.server.HTTPServer(("127.0.0.1", 0), Refuse) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_refusal_is_an_answer(refusing_server: str) -> None:
    found = check_endpoint(refusing_server)
    assert found.status is Status.OK
    assert "403" in found.found


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:9000", "ftp://x", "http://[broken"])
def test_endpoints_that_do_not_answer(url: str) -> None:
    assert check_endpoint(url).status is Status.BROKEN


def test_credentials_in_an_endpoint_are_not_shown() -> None:
    assert "hunter2" not in check_endpoint("http://me:hunter2@127.0.0.1:1").found


def test_tables_are_opened(corpus, tmp_path) -> None:
    assert check_table(str(corpus("basic_mor_v9_part")), {}).status is Status.OK
    assert check_table(str(tmp_path), {}).status is Status.BROKEN


def test_s3_packages_are_needed_for_s3_only(monkeypatch: pytest.MonkeyPatch) -> None:
    found = metadata.version

    def version(name: str) -> str:
        if name == "s3fs":
            raise metadata.PackageNotFoundError
        return found(name)

    monkeypatch.setattr(metadata, "version", version)
    without = {check.name: check.status for check in run_checks(None, {}, None)}
    with_s3 = {check.name: check.status for check in run_checks(None, {}, "http://127.0.0.1:1")}
    assert (without["s3fs"], with_s3["s3fs"]) == (Status.MISSING, Status.BROKEN)


@pytest.mark.parametrize(("pyspark", "status"), [("4.3.0", Status.BROKEN), (None, Status.OK)])
def test_a_pandas_that_only_spark_does_not_take(
    monkeypatch: pytest.MonkeyPatch, pyspark: str | None, status: Status
) -> None:
    installed = {**dict.fromkeys([*NEEDED, "s3fs", "polars", "duckdb"], "9999"), "pandas": "3.1.1", "pyspark": pyspark}
    lines = ["pandas>=2.2.3; extra == 'pandas'", "pandas<3,>=2.2.3; extra == 'spark'"]

    def version(name: str) -> str:
        if (found := installed[name]) is None:
            raise metadata.PackageNotFoundError
        return found

    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    monkeypatch.setattr(metadata, "version", version)
    (pandas,) = (check for check in run_checks(None, {}, None) if check.name == "pandas")
    assert pandas.status is status
