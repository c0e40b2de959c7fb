"""Files on local disks and object stores, with a few verbs: read, read ranges, list, stat, put, put if absent, put if
unchanged, delete.

``open_store`` returns a ``Store``, the only implementation. Functions should take the protocols of the verbs they use.
"""

from __future__ import annotations

from hoodie_storage.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ChangedError,
    NotFoundError,
    PathError,
    ShortReadError,
    StorageFault,
    TimeoutFault,
    UnknownOutcomeError,
    UnsupportedStoreError,
)
from hoodie_storage.ranged_file import RangedFile
from hoodie_storage.retry import watch_retries
from hoodie_storage.store import Store, open_store
from hoodie_storage.verbs import Delete, FileInfo, List, Put, PutIfAbsent, PutIfMatch, Read, ReadRanges, Stat

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "ChangedError",
    "Delete",
    "FileInfo",
    "List",
    "NotFoundError",
    "PathError",
    "Put",
    "PutIfAbsent",
    "PutIfMatch",
    "RangedFile",
    "Read",
    "ReadRanges",
    "ShortReadError",
    "Stat",
    "StorageFault",
    "Store",
    "TimeoutFault",
    "UnknownOutcomeError",
    "UnsupportedStoreError",
    "open_store",
    "watch_retries",
]
