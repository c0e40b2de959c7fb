"""hoodie_py: read Apache Hudi tables in Python, merged exactly as Java Hudi merges them.

Every public name, imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hoodie_py.errors import (
        CommitStateUnknownError,
        ConflictError,
        CorruptFileError,
        HoodieError,
        HoodieWarning,
        InvalidQueryError,
        InvalidTableError,
        MergeError,
        StorageError,
        TableNotFoundError,
        UnsupportedFeatureError,
    )
    from hoodie_py.formats.timeline import Instant
    from hoodie_py.hoodie_table import HoodieTable
    from hoodie_py.reader.batch import BufferedBatch
    from hoodie_py.reader.context import RecordContext
    from hoodie_py.reader.file_group import FileGroupReader
    from hoodie_py.reader.file_slice import FileSlice
    from hoodie_py.reader.merger import RecordMerger
    from hoodie_py.reader.records import DEFAULT_ORDERING, BufferedRecord, HoodieOperation
    from hoodie_py.reader.registry import register_merger
    from hoodie_py.table.scan import Scan
    from hoodie_py.table.scan_task import ScanTask

_HOMES = {
    "BufferedBatch": "hoodie_py.reader.batch",
    "BufferedRecord": "hoodie_py.reader.records",
    "CommitStateUnknownError": "hoodie_py.errors",
    "ConflictError": "hoodie_py.errors",
    "CorruptFileError": "hoodie_py.errors",
    "DEFAULT_ORDERING": "hoodie_py.reader.records",
    "FileGroupReader": "hoodie_py.reader.file_group",
    "FileSlice": "hoodie_py.reader.file_slice",
    "HoodieError": "hoodie_py.errors",
    "HoodieOperation": "hoodie_py.reader.records",
    "HoodieTable": "hoodie_py.hoodie_table",
    "HoodieWarning": "hoodie_py.errors",
    "Instant": "hoodie_py.formats.timeline",
    "InvalidQueryError": "hoodie_py.errors",
    "InvalidTableError": "hoodie_py.errors",
    "MergeError": "hoodie_py.errors",
    "RecordContext": "hoodie_py.reader.context",
    "RecordMerger": "hoodie_py.reader.merger",
    "Scan": "hoodie_py.table.scan",
    "ScanTask": "hoodie_py.table.scan_task",
    "StorageError": "hoodie_py.errors",
    "TableNotFoundError": "hoodie_py.errors",
    "UnsupportedFeatureError": "hoodie_py.errors",
    "register_merger": "hoodie_py.reader.registry",
}

__version__ = "0.1.0"
__all__ = [
    "DEFAULT_ORDERING",
    "BufferedBatch",
    "BufferedRecord",
    "CommitStateUnknownError",
    "ConflictError",
    "CorruptFileError",
    "FileGroupReader",
    "FileSlice",
    "HoodieError",
    "HoodieOperation",
    "HoodieTable",
    "HoodieWarning",
    "Instant",
    "InvalidQueryError",
    "InvalidTableError",
    "MergeError",
    "RecordContext",
    "RecordMerger",
    "Scan",
    "ScanTask",
    "StorageError",
    "TableNotFoundError",
    "UnsupportedFeatureError",
    "register_merger",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hoodie_py' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
