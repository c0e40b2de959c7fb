"""The package as a whole: what it offers and what it needs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import pytest

import hoodie_storage
from hoodie_storage import StorageFault
from hoodie_storage.location import check_path, join_paths


def test_all_is_sorted_and_documented() -> None:
    assert hoodie_storage.__all__ == sorted(hoodie_storage.__all__, key=lambda name: (name.islower(), name))
    for name in hoodie_storage.__all__:
        assert getattr(hoodie_storage, name).__doc__


def test_imports_fsspec_and_the_standard_library_only() -> None:
    code = "import json, sys, hoodie_storage; print(json.dumps([m for m in sys.modules if '.' not in m]))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    loaded = set(json.loads(run.stdout))
    assert loaded & {"s3fs", "botocore", "aiohttp", "pyarrow", "numpy", "tenacity", "hoodie_py"} == set()


@pytest.mark.parametrize(
    "kind", [getattr(hoodie_storage, name) for name in hoodie_storage.__all__ if name.endswith(("Error", "Fault"))]
)
def test_faults_travel_and_tell_everything(kind: type[StorageFault]) -> None:
    fault = kind("it broke", operation="read", path="s3://b/x", hint="Mend it.", identical=True, package="p")
    assert str(fault) == "read s3://b/x: it broke. Mend it."
    copy = pickle.loads(pickle.dumps(fault))
    assert type(copy) is kind
    assert (str(copy), copy.details) == (str(fault), fault.details)
    assert str(kind("it broke")) == "it broke"


def test_joining() -> None:
    assert join_paths("", "a", "", "b/c") == "a/b/c"
    assert check_path("") == ""
    for path in ("a..b", "..a", "a...", "12:30/x", "a:b", "a=b:/c"):
        assert check_path(path) == path
