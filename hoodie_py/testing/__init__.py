"""Helpers for users' own tests: conformance suites, a record context over dict rows, and a local S3 server.

    class TestMyMerger(RecordMergerTests):
        merger = MyMerger

    with local_s3() as s3:
        table = HoodieTable.open(f"{s3.uri}/trips", s3.storage_options)

``from hoodie_py.testing import local_s3_server`` in a conftest.py gives all tests of a session one server. pytest is
imported only for this fixture and for the suites that use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hoodie_py.reader.record.table_context import MappingRecordContext
from hoodie_py.testing.record_merger_tests import MergerReport, RecordMergerTests
from hoodie_py.testing.servers import LocalS3, local_s3, make_server_fixture

if TYPE_CHECKING:
    from hoodie_py.testing.lock_tests import LockTests
    from hoodie_py.testing.storage_tests import ConditionalStorageTests, StorageTests

__all__ = [
    "ConditionalStorageTests",
    "LocalS3",
    "LockTests",
    "MappingRecordContext",
    "MergerReport",
    "RecordMergerTests",
    "StorageTests",
    "local_s3",
]

_SUITES = {
    "ConditionalStorageTests": "hoodie_py.testing.storage_tests",
    "LockTests": "hoodie_py.testing.lock_tests",
    "StorageTests": "hoodie_py.testing.storage_tests",
}


def __getattr__(name: str) -> Any:
    """Return a name whose module needs pytest; it is imported on first use."""
    if name == "local_s3_server":
        value = make_server_fixture()
    elif name in _SUITES:
        import pytest

        pytest.register_assert_rewrite(_SUITES[name])  # so that a failed test shows its values
        value = getattr(import_module(_SUITES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
