"""Which tables non-blocking writers may write (checks of Hudi ``HoodieWriteConfig``, ``WriteConcurrencyMode``).

A non-blocking write adds log files to buckets. The key's hash chooses the bucket, and the bucket's number the file id,
so several writers may do so at once, even for the same keys: readers and compactions merge the log files by the table's
merge mode.
"""

from __future__ import annotations

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.indexes.definitions import RECORD_INDEX, SECONDARY_PREFIX
from hoodie_py.options.write import CONCURRENCY_MODE, NON_BLOCKING
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.kept_indexes import list_kept_partitions
from hoodie_py.writer.settings import WriteSettings


def check_non_blocking(snapshot: Snapshot, settings: WriteSettings) -> None:
    """Refuse non-blocking writes where Java does, and on tables whose metadata table indexes keys.

    Raises:
        InvalidQueryError: the table is not merge-on-read, or its index is no simple bucket index.
        UnsupportedFeatureError: the table is older than version 8, or has a record index or a secondary index.
    """
    if not settings.non_blocking:
        return
    config, index = snapshot.config, settings.index
    if not config.is_merge_on_read or not index.is_bucket or index.consistent:
        raise InvalidQueryError(
            f"{CONCURRENCY_MODE}={NON_BLOCKING} needs a merge-on-read table with a simple bucket index.",
            hint="Set hoodie.index.type=BUCKET and hoodie.bucket.index.num.buckets, or use "
            "OPTIMISTIC_CONCURRENCY_CONTROL.",
        )
    if not config.has_logs_named_by_commit:
        raise UnsupportedFeatureError(
            "Non-blocking writers of a table below version 8: its log files belong to the slice that the writer saw.",
            hint="Upgrade the table, or use OPTIMISTIC_CONCURRENCY_CONTROL.",
        )
    keyed = [each for each in list_kept_partitions(snapshot) if each.startswith((RECORD_INDEX, SECONDARY_PREFIX))]
    if keyed:
        raise UnsupportedFeatureError(
            f"Non-blocking writers of a table whose metadata table has {keyed[0]}: writers of one key would not know "
            "of each other.",
            hint="Drop the index, or use OPTIMISTIC_CONCURRENCY_CONTROL.",
        )
