"""What a table must not be for this package to write to it.

Each is valid Hudi whose rules are not built here; going on would lose rows or leave the table in a state that Java
would misread. A refusal names the feature and leaves the table as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_py.errors import ConflictError, FileMissingError, HoodieError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.instants import CLUSTERING, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT, RESTORE, Instant
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.table.partition_values import is_formatted_time
from hoodie_py.table.schema_history import SCHEMA_FOLDER
from hoodie_py.table.snapshot import Snapshot


def check_compactable(snapshot: Snapshot) -> None:
    """Refuse a table that cannot be compacted here.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    problem = next(_iterate_problems(snapshot), None)
    if problem is not None:
        raise problem.locate(table=snapshot.config.name)


def check_writable(snapshot: Snapshot) -> None:
    """Refuse a table that records cannot be written to here.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    problem = next(_iterate_features(snapshot), None)
    if problem is not None:
        raise problem.locate(table=snapshot.config.name)


def check_pending_writes(snapshot: Snapshot, instant: str) -> None:
    """Refuse to compact up to table version 6 beside an older write that has not completed: it wrote below the slice
    that the compaction closes, so that its rows would be lost (Hudi ``CompactHelpers``, for one writer).

    Args:
        snapshot: the table as it is now.
        instant: of the compaction.

    Raises:
        ConflictError: there is such a write.
    """
    if snapshot.config.has_logs_named_by_commit:
        return
    pending = [each for each in list_pending_writes(snapshot) if each.request_time <= instant]
    if pending:
        raise ConflictError(
            f"Compaction on table version {snapshot.config.version} beside a pending {pending[0].action}, whose "
            "rows it would lose.",
            hint="Let that write finish, or roll it back.",
            instant=pending[0].request_time,
            table=snapshot.config.name,
        )


def list_pending_writes(snapshot: Snapshot) -> list[Instant]:
    """Return writes that have not completed, oldest first: no compactions, no clusterings."""
    pending = snapshot.timeline.timeline.select_pending()
    written = [each for each in pending if each.is_write and each.action not in (COMPACTION, LOG_COMPACTION)]
    return [each for each in written if not is_clustering(snapshot, each)]


def is_clustering(snapshot: Snapshot, pending: Instant) -> bool:
    """Whether a pending instant is a clustering, which up to table version 6 only its plan tells."""
    if pending.action == REPLACE_COMMIT:
        return snapshot.timeline.read_replace_plan(pending).is_clustering
    return pending.action == CLUSTERING


def _iterate_problems(snapshot: Snapshot) -> Iterator[HoodieError]:
    if not snapshot.config.is_merge_on_read:
        yield UnsupportedFeatureError(
            "Compaction of a COPY_ON_WRITE table.", hint="Such a table has no log files to compact."
        )
    times = snapshot.schema.times
    for name in () if times is None else times.names:
        if is_formatted_time(snapshot.config, name):
            # A scan gives such a column as text: of log rows as their numbers, and of no base rows at all.
            yield UnsupportedFeatureError(
                "Compaction of a table that the timestamp key generator partitions by a timestamp column.",
                hint="Compact it with Java Hudi or Flink.",
                column=name,
            )
    yield from _iterate_features(snapshot)


def _iterate_features(snapshot: Snapshot) -> Iterator[HoodieError]:
    yield from _iterate_config_features(snapshot.config)
    if _has_files(snapshot.files, SCHEMA_FOLDER):
        yield UnsupportedFeatureError("Writing to a table with a schema-on-read history.")
    restores = snapshot.timeline.timeline.select_pending().select_actions(RESTORE)
    if len(restores):
        yield UnsupportedFeatureError(
            "Writing to a table beside a pending restore.",
            hint="Finish it with Java Hudi.",
            instant=restores.instants[0].request_time,
        )


def _iterate_config_features(config: TableConfig) -> Iterator[HoodieError]:
    if config.cdc_enabled:
        yield UnsupportedFeatureError("Writing to a table with change data capture.")
    if not config.populate_meta_fields:
        yield UnsupportedFeatureError("Writing to a table without meta fields (virtual keys).")
    if config.bootstrap_base_path:
        yield UnsupportedFeatureError("Writing to a bootstrapped table.")
    if config.multiple_base_file_formats:
        yield UnsupportedFeatureError("Writing to a table with several base file formats.")
    if config.base_file_format != "PARQUET":
        yield UnsupportedFeatureError(f"Writing base files of format {config.base_file_format[:40]!r}.")
    if config.partition_metafile_base_format:
        yield UnsupportedFeatureError("Writing to a table whose partition metafiles are in the base file format.")


def _has_files(files: TableFiles, folder: str) -> bool:
    try:
        return any(not info.is_dir and not info.name.endswith(".crc") for info in files.list(folder))
    except FileMissingError:
        return False
