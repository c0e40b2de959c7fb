"""The hash ranges of a partition: which are in force, and how a clustering changes them.

Agrees with Hudi ``ConsistentBucketIndexUtils``. The first ranges of a partition are in force at once. A clustering
writes new ranges right before it completes; they are in force once its instant is completed on the timeline. A file
``<instant>.commit`` beside them says the same after the instant is archived. It is written when the clustering has
completed, and again before the archival, since a process may die in between. Loading ranges writes nothing.

Ranges of an instant that is not on the timeline, without that file, belong to an archived clustering or to one that was
rolled back. They are in force if their new file groups exist. Java looks for any of their file groups, also for
unchanged ones, so a rollback has to remove the ranges: else Java would put keys into file groups that never existed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hoodie_py.errors import ConflictError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.hashing_metadata import (
    COMMIT_SUFFIX,
    CONSISTENT_FOLDER,
    FIRST_INSTANT,
    HASHING_SUFFIX,
    HashingMetadata,
    parse_instant,
)
from hoodie_py.formats.timeline.instants import CLUSTERING, REPLACE_COMMIT, Instant
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot

_CLUSTER = "CLUSTER"


def begin_hash_ranges(snapshot: Snapshot, partition: str, buckets: int) -> HashingMetadata:
    """Load the ranges of a partition that are in force; create ``buckets`` first ranges if it has none.

    Raises:
        HoodieError: as ``load_hash_ranges``.
    """
    found = load_hash_ranges(snapshot, partition)
    if found is not None:
        return found
    first = HashingMetadata.make_first(partition, buckets)
    try:
        snapshot.files.put_if_absent(_locate(partition, FIRST_INSTANT, HASHING_SUFFIX), first.to_bytes())
    except ConflictError:  # another writer began the partition, perhaps with another number of ranges
        return begin_hash_ranges(snapshot, partition, buckets)
    return first


def load_hash_ranges(snapshot: Snapshot, partition: str) -> HashingMetadata | None:
    """Load the ranges of a partition that are in force; None if it has none.

    Raises:
        CorruptFileError: the ranges are damaged.
        InvalidTableError: the ranges belong to another partition.
        UnsupportedFeatureError: it is unknown whether the newest ranges are in force.
    """
    folder = _find_folder(partition)
    names = sorted(each.name for each in snapshot.files.list_or_empty(folder) if not each.is_dir)
    if not any(name.endswith(HASHING_SUFFIX) for name in names):
        return None
    found = _load_in_force(snapshot, partition, names)
    if found.partition_path != partition:
        raise InvalidTableError(
            "The hashing metadata belongs to another partition.",
            path=folder,
            partition=found.partition_path[:200] or None,
        )
    return found


def save_hash_ranges(files: TableFiles, ranges: HashingMetadata) -> None:
    """Write the ranges of a clustering that is about to complete, in place of the ranges of a lost attempt."""
    path = _locate(ranges.partition_path, ranges.instant, HASHING_SUFFIX)
    files.delete_with_checksum(path)
    files.put_if_absent(path, ranges.to_bytes(), unique=True)


def confirm_hash_ranges(files: TableFiles, instant: str, partitions: Iterable[str]) -> None:
    """Mark the ranges that a completed clustering wrote as in force, in the partitions where it wrote some."""
    for partition in partitions:
        names = {each.name for each in files.list_or_empty(_find_folder(partition))}
        if f"{instant}{HASHING_SUFFIX}" in names and f"{instant}{COMMIT_SUFFIX}" not in names:
            files.put(_locate(partition, instant, COMMIT_SUFFIX), b"")


def forget_hash_ranges(files: TableFiles, instant: str, partitions: Iterable[str]) -> None:
    """Remove the ranges of a clustering that is undone."""
    for partition in partitions:
        for suffix in (COMMIT_SUFFIX, HASHING_SUFFIX):
            files.delete_with_checksum(_locate(partition, instant, suffix))


def confirm_completed(snapshot: Snapshot, instants: Sequence[Instant]) -> None:
    """Confirm the ranges of completed clusterings that are about to leave the active timeline."""
    replaces = [each for each in instants if each.comparable_action == REPLACE_COMMIT and each.is_completed]
    if not replaces or not snapshot.files.exists(CONSISTENT_FOLDER):
        return
    for instant, metadata in zip(replaces, snapshot.timeline.read_all_metadata(replaces), strict=True):
        if metadata.operation_type == _CLUSTER:
            confirm_hash_ranges(snapshot.files, instant.request_time, metadata.replaced_file_ids)


def forget_pending(snapshot: Snapshot, pending: Instant) -> None:
    """Remove the ranges of a pending clustering that is rolled back. Its plan must still exist."""
    if pending.action in (CLUSTERING, REPLACE_COMMIT) and snapshot.files.exists(CONSISTENT_FOLDER):
        plan = snapshot.timeline.read_replace_plan(pending)
        forget_hash_ranges(snapshot.files, pending.request_time, {path for path, _ in plan.iterate_file_groups()})


def forget_undone(snapshot: Snapshot, states: Sequence[Instant], partitions: Iterable[str]) -> None:
    """Remove the ranges of a clustering that a restore undoes.

    ``states``: the states of its instant. ``partitions``: the partitions that have files of it.
    """
    replaces = [each for each in states if each.comparable_action == REPLACE_COMMIT]
    if replaces and snapshot.files.exists(CONSISTENT_FOLDER):
        done = snapshot.timeline.read_all_metadata([each for each in replaces if each.is_completed])
        changed = {path for metadata in done for path in metadata.replaced_file_ids}
        forget_hash_ranges(snapshot.files, replaces[0].request_time, changed.union(partitions))


def _load_in_force(snapshot: Snapshot, partition: str, names: Sequence[str]) -> HashingMetadata:
    instants = sorted(parse_instant(each) for each in names if each.endswith(HASHING_SUFFIX))
    committed = {parse_instant(each) for each in names if each.endswith(COMMIT_SUFFIX)} | {FIRST_INSTANT}
    committed |= {each.request_time for each in snapshot.timeline.list_completed_writes()}
    pending = snapshot.timeline.pending_times
    for at in reversed(range(len(instants))):
        instant = instants[at]
        if instant in committed:
            return _read(snapshot.files, partition, instant)
        if instant in pending:
            continue
        # Neither completed nor pending: archived, or rolled back. Only new file groups prove that it completed; Java
        # takes unchanged ones as a proof, too.
        older = _read(snapshot.files, partition, instants[at - 1]) if at else None
        found = _read(snapshot.files, partition, instant)
        new = set(found.file_ids).difference(() if older is None else older.file_ids)
        if any(each.file_id in new for each in snapshot.view.list_slices(None, [partition])):
            return found
        break
    raise UnsupportedFeatureError(
        "Writing to a partition whose hashing metadata may or may not be in force.",
        path=_find_folder(partition),
        hint=f"If the clustering {instants[-1]} was rolled back, remove its file there; else let a write by Java Hudi "
        "settle it.",
    )


def _read(files: TableFiles, partition: str, instant: str) -> HashingMetadata:
    return HashingMetadata.from_bytes(read_bounded(files, _locate(partition, instant, HASHING_SUFFIX)))


def _find_folder(partition: str) -> str:
    return f"{CONSISTENT_FOLDER}/{partition}".rstrip("/")


def _locate(partition: str, instant: str, suffix: str) -> str:
    return f"{_find_folder(partition)}/{instant}{suffix}"
