"""Partitions of the metadata table without file groups: which may be so, and what is said of the others.

Java builds each partition with its file groups, and writes to these ever after. Only a partitioned record index gets
groups for each partition of the table when that gets files (Hudi ``PartitionedRecordIndexer``), so over a table without
files it has none. Any other partition, and this one over a table with files, has lost them.
"""

from __future__ import annotations

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.hfile.files_partition import FILES_PARTITION
from hoodie_py.formats.metadata_table.index_definitions import RECORD_INDEX
from hoodie_py.table.metadata_table.file_lists import read_file_lists
from hoodie_py.table.metadata_table.view import MetadataView


def may_have_no_groups(view: MetadataView, partition: str) -> bool:
    """Say whether a partition rightly has no file group.

    Raises:
        HoodieError: the list of files, or the file of definitions, cannot be read.
    """
    definition = view.definitions.get(RECORD_INDEX) if partition == RECORD_INDEX else None
    if definition is None or not definition.is_partitioned or not view.list_groups(FILES_PARTITION):
        return False
    _, files = read_file_lists(view, None)
    return not any(files.values())


def make_lost_groups(view: MetadataView, partition: str) -> InvalidTableError:
    """Return the error for a partition that has lost its file groups."""
    way = "everything" if partition == FILES_PARTITION else "it"
    return InvalidTableError(
        f"The partition {partition!r} of the metadata table has no files, and the table's properties name it.",
        hint=f"`hoodie index TABLE drop {partition}` drops {way}; then build it again.",
        path=f"{view.files.uri}/{partition}",
    )
