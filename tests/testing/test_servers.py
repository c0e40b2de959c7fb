"""The local S3 server for users' tests."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading

import fsspec.asyn
import pytest

import hoodie_py.testing
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.testing import LocalS3, local_s3, local_s3_server  # noqa: F401 - a fixture

SECONDS_TO_END = 30.0


@pytest.mark.s3
def test_serves_a_bucket_and_leaves_nothing_behind() -> None:
    fsspec.asyn.get_loop()
    environment, threads = dict(os.environ), set(threading.enumerate())
    level = logging.getLogger("werkzeug").level
    with local_s3("mine") as s3:
        assert s3.uri == "s3://mine"
        files = TableFiles.open(f"{s3.uri}/t", s3.storage_options)
        files.put("a", b"x")
        assert TableFiles.open("s3://mine", s3.storage_options).read("t/a") == b"x"
    assert dict(os.environ) == environment
    assert logging.getLogger("werkzeug").level == level
    left = [each for each in threading.enumerate() if each not in threads]
    left = [each for each in left if not each.name.startswith("asyncio_")]  # fsspec's own, for looking up host names
    for each in left:
        each.join(SECONDS_TO_END)  # one that answered the last request may be about to end
    assert not [each.name for each in left if each.is_alive()]
    with local_s3("mine") as s3:
        assert TableFiles.open("s3://mine", s3.storage_options).list("") == []


@pytest.mark.s3
def test_stops_when_the_block_fails() -> None:
    with pytest.raises(KeyError), local_s3("failing") as s3:
        raise KeyError
    with pytest.raises(OSError, match="endpoint"):
        TableFiles.open(s3.uri, s3.storage_options).read("a")


@pytest.mark.s3
def test_the_environment_it_describes_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with local_s3("described") as s3:
        for name, value in s3.env.items():
            monkeypatch.setenv(name, value)
        TableFiles.open("s3a://described").put("a", b"x")
        assert TableFiles.open("s3://described", s3.storage_options).read("a") == b"x"
        assert TableFiles.open("s3://described", s3.spark_conf()).read("a") == b"x"


@pytest.mark.s3
def test_the_fixture(local_s3_server: LocalS3) -> None:  # noqa: F811 - pytest's way
    TableFiles.open(local_s3_server.uri, local_s3_server.storage_options).put("fixture", b"x")


def test_what_it_looks_like() -> None:
    value = LocalS3("s3://b", "http://h", {"secret": "hidden"}, {"AWS_SECRET_ACCESS_KEY": "hidden"})
    assert "hidden" not in repr(value)
    assert value.bucket == "b"


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moto.server", None)
    with pytest.raises(UnsupportedFeatureError, match=r"pip install 'hoodie_py\[testing\]'"), local_s3():
        pass


def test_imports_without_pytest_and_server() -> None:
    code = "import sys; sys.modules['pytest'] = sys.modules['moto'] = None; import hoodie_py.testing"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        hoodie_py.testing.no_such_name  # noqa: B018 - the access is the test
