"""Merge the rows of one write that have the same key, before the write looks for keys in the table.

Agrees with Hudi's ``HoodieWriteHelper`` (``deduplicateRecords``). The versions of a key merge in their original order,
by the rule that merges log on log; a payload class merges by its ``preCombine``. A key is a record key within a
partition, or with a global index the record key alone. The partition of the winning version stays. Deletes by bare keys
have no rows to merge: one of each key is kept, the one with the greatest ordering value if they have any.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hoodie_py.arrow.arrays import number_strings
from hoodie_py.options import write as write_keys
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.precombine.versions import RecordVersions
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.settings import WriteSettings

_OPTIONS = {
    WriteOperation.UPSERT: write_keys.COMBINE_BEFORE_UPSERT,
    WriteOperation.DELETE: write_keys.COMBINE_BEFORE_DELETE,
}


def needs_combining(operation: WriteOperation, options: Mapping[str, str]) -> bool:
    """Whether a write merges its rows of one key, by Hudi's options and their defaults."""
    return _OPTIONS.get(operation, write_keys.COMBINE_BEFORE_INSERT).read(options)


def combine(
    records: WriteRecords,
    snapshot: Snapshot,
    settings: WriteSettings,
    merger: Merger | None = None,
) -> WriteRecords:
    """Merge records of the same key.

    The records are in the order of their versions, with the data columns and types of the table's files. The index in
    the settings defines what a key is. Distinct keys come in the order of the winning versions. If no key repeats, the
    result is ``records`` itself.

    Raises:
        MergeError: the table's merger is missing or failed, or ordering values do not compare.
        InvalidTableError: an unknown partial update mode.
    """
    by_key_alone = settings.index.is_global
    codes, count = number_records(records, by_key_alone=by_key_alone)
    if count == len(records):
        return records
    repeats = np.bincount(codes, minlength=count) > 1
    at = np.flatnonzero(repeats[codes])
    versions = RecordVersions(records, snapshot, settings, merger)
    return versions.replace_merged(np.flatnonzero(~repeats[codes]), versions.fold(at, codes[at]))


def number_records(records: WriteRecords, *, by_key_alone: bool) -> tuple[np.ndarray, int]:
    """Return the int64 number of each record's key, and how many distinct keys there are.

    ``by_key_alone``: equal record keys in different partitions are one key.
    """
    names, codes = number_strings(records.keys)
    if by_key_alone or records.partition_paths is None or len(names) == len(records):
        return codes, len(names)
    paths, partitions = number_strings(records.partition_paths)
    if len(paths) == 1:
        return codes, len(names)
    _, both = np.unique(codes * len(paths) + partitions, return_inverse=True)
    both = both.reshape(-1)
    return both, int(both.max()) + 1
