"""hoodie_py: read and write Apache Hudi tables in Python, with rows merged exactly as Java Hudi merges them.

The public names. Each is imported when it is first used, so that ``import hoodie_py`` loads no large package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hoodie_py.catalog import Catalog, CatalogTable, open_catalog
    from hoodie_py.errors import (
        CommitStateUnknownError,
        ConflictError,
        CorruptFileError,
        FileMissingError,
        HoodieError,
        HoodieWarning,
        InvalidQueryError,
        InvalidTableError,
        MergeError,
        StorageError,
        TableNotFoundError,
        UnsupportedFeatureError,
    )
    from hoodie_py.files import TableFiles
    from hoodie_py.formats.config.merge_config import MergeMode
    from hoodie_py.formats.config.table_config import TableConfig
    from hoodie_py.formats.logical_types.variant_json import variant_to_json
    from hoodie_py.formats.timeline.timeline import Instant, Timeline
    from hoodie_py.hoodie_table import HoodieTable
    from hoodie_py.metastore.report import SyncResult
    from hoodie_py.reader.file_group import FileGroupReader
    from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
    from hoodie_py.reader.merge.merger import RecordMerger
    from hoodie_py.reader.merge.registry import register_merger
    from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats, SpillStats
    from hoodie_py.reader.record.batch import BufferedBatch
    from hoodie_py.reader.record.record import DEFAULT_ORDERING, BufferedRecord, HoodieOperation, RecordContext
    from hoodie_py.table.blobs import read_blob
    from hoodie_py.table.incremental.follow import FollowedBatch, TableFollower
    from hoodie_py.table.inspect import TableInspect
    from hoodie_py.table.scan.query import Task
    from hoodie_py.table.scan.scan import Scan
    from hoodie_py.table.scan.task import ScanTask
    from hoodie_py.writer.alter.alter import AlterResult
    from hoodie_py.writer.archival.archive import ArchiveResult
    from hoodie_py.writer.commit.result import WriteResult
    from hoodie_py.writer.dml.clauses import Delete, Insert, Update
    from hoodie_py.writer.lock.file_system import FileSystemLock
    from hoodie_py.writer.lock.lock import Lock, NoLock
    from hoodie_py.writer.lock.machine import MachineLock
    from hoodie_py.writer.lock.storage import StorageLock
    from hoodie_py.writer.records import WriteOperation
    from hoodie_py.writer.rollback.preview import DoomedFile, RollbackReport
    from hoodie_py.writer.rollback.rollback import RollbackResult
    from hoodie_py.writer.savepoint.restore import RestoreResult
    from hoodie_py.writer.savepoint.savepoint import Savepoint
    from hoodie_py.writer.services.clean import CleanResult
    from hoodie_py.writer.services.clean_plan import CleanReport
    from hoodie_py.writer.services.compaction_report import CompactionResult, PlanReport, Progress
    from hoodie_py.writer.services.due_service import DueService
    from hoodie_py.writer.upgrade.change_version import VersionChange
    from hoodie_py.writer.upkeep.report import ServiceReport, ServiceStep

_NAMES = {
    "hoodie_py.catalog": "Catalog CatalogTable open_catalog",
    "hoodie_py.errors": (
        "CommitStateUnknownError ConflictError CorruptFileError FileMissingError HoodieError HoodieWarning "
        "InvalidQueryError InvalidTableError MergeError StorageError TableNotFoundError UnsupportedFeatureError"
    ),
    "hoodie_py.files": "TableFiles",
    "hoodie_py.formats.config.merge_config": "MergeMode",
    "hoodie_py.formats.config.table_config": "TableConfig",
    "hoodie_py.formats.timeline.timeline": "Instant Timeline",
    "hoodie_py.formats.logical_types.variant_json": "variant_to_json",
    "hoodie_py.hoodie_table": "HoodieTable",
    "hoodie_py.metastore.report": "SyncResult",
    "hoodie_py.reader.file_group": "FileGroupReader",
    "hoodie_py.reader.file_slice": "BaseFile FileSlice LogFile",
    "hoodie_py.reader.merge.merger": "RecordMerger",
    "hoodie_py.reader.merge.registry": "register_merger",
    "hoodie_py.reader.read_info": "ReadInfo ReadOptions ReadStats SpillStats",
    "hoodie_py.reader.record.batch": "BufferedBatch",
    "hoodie_py.reader.record.record": "BufferedRecord DEFAULT_ORDERING HoodieOperation RecordContext",
    "hoodie_py.table.blobs": "read_blob",
    "hoodie_py.table.incremental.follow": "FollowedBatch TableFollower",
    "hoodie_py.table.inspect": "TableInspect",
    "hoodie_py.table.scan.query": "Task",
    "hoodie_py.table.scan.scan": "Scan",
    "hoodie_py.table.scan.task": "ScanTask",
    "hoodie_py.writer.alter.alter": "AlterResult",
    "hoodie_py.writer.archival.archive": "ArchiveResult",
    "hoodie_py.writer.services.clean": "CleanResult",
    "hoodie_py.writer.services.clean_plan": "CleanReport",
    "hoodie_py.writer.commit.result": "WriteResult",
    "hoodie_py.writer.services.compaction_report": "CompactionResult PlanReport Progress",
    "hoodie_py.writer.dml.clauses": "Delete Insert Update",
    "hoodie_py.writer.lock.file_system": "FileSystemLock",
    "hoodie_py.writer.lock.lock": "Lock NoLock",
    "hoodie_py.writer.lock.machine": "MachineLock",
    "hoodie_py.writer.lock.storage": "StorageLock",
    "hoodie_py.writer.records": "WriteOperation",
    "hoodie_py.writer.rollback.preview": "DoomedFile RollbackReport",
    "hoodie_py.writer.rollback.rollback": "RollbackResult",
    "hoodie_py.writer.savepoint.restore": "RestoreResult",
    "hoodie_py.writer.savepoint.savepoint": "Savepoint",
    "hoodie_py.writer.services.due_service": "DueService",
    "hoodie_py.writer.upkeep.report": "ServiceReport ServiceStep",
    "hoodie_py.writer.upgrade.change_version": "VersionChange",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = [
    "DEFAULT_ORDERING", "AlterResult", "ArchiveResult", "BaseFile", "BufferedBatch", "BufferedRecord", "Catalog",
    "CatalogTable", "CleanReport", "CleanResult", "CommitStateUnknownError", "CompactionResult", "ConflictError",
    "CorruptFileError", "Delete", "DoomedFile", "DueService", "FileGroupReader", "FileMissingError", "FileSlice",
    "FileSystemLock", "FollowedBatch", "HoodieError", "HoodieOperation", "HoodieTable", "HoodieWarning", "Insert",
    "Instant", "InvalidQueryError", "InvalidTableError", "Lock", "LogFile", "MachineLock", "MergeError",
    "MergeMode", "NoLock", "PlanReport", "Progress", "ReadInfo", "ReadOptions", "ReadStats", "RecordContext",
    "RecordMerger", "RestoreResult", "RollbackReport", "RollbackResult", "Savepoint", "Scan", "ScanTask",
    "ServiceReport", "ServiceStep", "SpillStats", "StorageError", "StorageLock", "SyncResult", "TableConfig",
    "TableFiles", "TableFollower", "TableInspect", "TableNotFoundError", "Task", "Timeline",
    "UnsupportedFeatureError", "Update", "VersionChange", "WriteOperation", "WriteResult", "open_catalog",
    "read_blob", "register_merger", "variant_to_json",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hoodie_py' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
