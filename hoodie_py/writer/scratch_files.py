"""Files in the making that killed writers left on a local disk: nobody reads them, but they take space."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER


def remove_scratch_files(files: TableFiles, partitions: Iterable[str]) -> int:
    """Remove those that are certain to be nobody's from the table's own folder and some partitions.

    Args:
        files: the table's files.
        partitions: paths of partitions that are there.

    Returns:
        How many files that were.
    """
    return sum(map(files.remove_scratch, (METADATA_FOLDER, *sorted(partitions))))
