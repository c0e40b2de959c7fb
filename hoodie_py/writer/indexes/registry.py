"""The indexes of the metadata table by the names of their partitions (Hudi ``MetadataPartitionType``).

A partition whose name is not here cannot be kept right, and a write to its table is refused (``metadata_table``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.indexes import definitions
from hoodie_py.writer.indexes.blooms import Blooms
from hoodie_py.writer.indexes.column_ranges import ColumnRanges
from hoodie_py.writer.indexes.expressions import Expressions
from hoodie_py.writer.indexes.files import Files
from hoodie_py.writer.indexes.index import Index, MetadataCommit
from hoodie_py.writer.indexes.partition_ranges import PartitionRanges
from hoodie_py.writer.indexes.record_keys import RecordKeys
from hoodie_py.writer.indexes.secondary_keys import SecondaryKeys

_INDEXES: Mapping[str, type[Index]] = {
    definitions.FILES_PARTITION: Files,
    definitions.COLUMN_STATS: ColumnRanges,
    definitions.PARTITION_STATS: PartitionRanges,
    definitions.BLOOM_FILTERS: Blooms,
    definitions.RECORD_INDEX: RecordKeys,
}
_BY_PREFIX: Mapping[str, type[Index]] = {
    definitions.EXPRESSION_PREFIX: Expressions,
    definitions.SECONDARY_PREFIX: SecondaryKeys,
}

FIXED: Final = tuple(_INDEXES)
"""The partitions of which a table has at most one each; an index stands after those that it needs."""


def find_index(partition: str) -> Index | None:
    """Return the index of a partition, not prepared; None if it is not known."""
    by_prefix = (found for prefix, found in _BY_PREFIX.items() if partition.startswith(prefix))
    found = _INDEXES.get(partition) or next(by_prefix, None)
    return None if found is None else found(partition)


def get_index(partition: str) -> Index:
    """Return the index of a partition that is to be built or checked.

    Raises UnsupportedFeatureError if it is not known.
    """
    found = find_index(partition)
    if found is None:
        raise UnsupportedFeatureError(f"Building the index {partition[:100]!r}.", hint="Let Java Hudi build it.")
    return found


def prepare_indexes(commit: MetadataCommit, partitions: Sequence[str]) -> MetadataCommit:
    """Read what can be read before the lock, and return the commit with the indexes that know it.

    Indexes prepared for other partitions stay. Errors are those of ``Index.prepare``.
    """
    known = [index for name in partitions if (index := find_index(name)) is not None]
    return replace(commit, indexes={**commit.indexes, **{each.partition: each.prepare(commit) for each in known}})
