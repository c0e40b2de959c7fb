"""Reads all entries of a small HFile in memory, such as a file of the bootstrap index."""

from __future__ import annotations

from hoodie_py.formats.hfile.data_block import Entry
from hoodie_py.formats.hfile.reader import HFile


def read_hfile(data: bytes | memoryview) -> list[Entry]:
    """Return all entries of an HFile, in key order. Raises as ``HFile.iterate_entries``."""
    return list(HFile.from_bytes(data).iterate_entries())
