"""Write the metafile that makes a folder a partition (Hudi ``HoodiePartitionMetadata``).

Readers that list folders, and Java when it rebuilds the metadata table, skip folders without it.
"""

from __future__ import annotations

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import format_properties

PARTITION_METAFILE = ".hoodie_partition_metadata"


def ensure_partition(files: TableFiles, partition_path: str, instant: str) -> None:
    """Make a folder a partition if it is not one; to be called before the first data file is written there.

    Raises:
        CommitStateUnknownError: the store did not say whether the file was written.
        StorageError: the store refused.
    """
    path = f"{partition_path}/{PARTITION_METAFILE}" if partition_path else PARTITION_METAFILE
    if files.exists(path):
        return
    depth = partition_path.count("/") + 1 if partition_path else 0
    content = format_properties({"commitTime": instant, "partitionDepth": str(depth)}, comment="partition metadata")
    try:
        files.put_if_absent(path, content, unique=True)
    except ConflictError:
        return  # another task wrote it first; every task's file will do
