"""Conflicts between a write and what other writers did since it loaded the table (Hudi
``SimpleConcurrentFileWritesConflictResolutionStrategy``).

* Another commit wrote to or replaced a file group of this write: a conflict.
* A compaction of such a group is no conflict from table version 8 on, as a log file belongs there to the newest slice
  at its completion. Up to version 6 log files carry the slice's base instant, so a compaction that was planned or done
  since would lose them. Base files that new records fill are handled as on copy-on-write tables.
* Non-blocking writes of a bucket index add log files to the same file groups at the same time. Another base file, or
  another file id for the same bucket, is still a conflict.
* Two writes that did not find a key would both insert it. So another write's inserts into a partition that gets new
  keys are a conflict, too. Java does not check this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hoodie_py.errors import ConflictError
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.formats.timeline.instants import COMMIT, LOG_COMPACTION, RESTORE, SAVEPOINT, Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.index.bucket import parse_bucket
from hoodie_py.writer.transaction.pending import iterate_pending_clusterings

_HINT = "Try again: the next attempt loads the table again."


@dataclass(frozen=True, slots=True)
class Claims:
    """What a write changes.

    Attributes:
        touched: file groups that get a new file.
        replaced: file ids of the groups that the write replaces, by partition path.
        new_keys_in: partitions that get new keys; None if only the tasks will know.
        looked_up: whether the write searched for these keys, so that no other write may insert them.
        non_blocking: whether other writes may add log files to the same file groups, and insert the same keys.
        rewritten: the touched groups whose new file is a base file that new keys fill.
    """

    touched: frozenset[GroupKey] = frozenset()
    replaced: Mapping[str, tuple[str, ...]] | None = None
    new_keys_in: frozenset[str] | None = frozenset()
    looked_up: bool = True
    non_blocking: bool = False
    rewritten: frozenset[GroupKey] = frozenset()

    @property
    def groups(self) -> frozenset[GroupKey]:
        """All file groups that the write changes."""
        return self.touched | self.replaced_groups

    @property
    def replaced_groups(self) -> frozenset[GroupKey]:
        """File groups that the write replaces."""
        return frozenset((partition, each) for partition, ids in (self.replaced or {}).items() for each in ids)


def check_conflicts(
    claims: Claims, before: Snapshot, now: Snapshot, *, beginning: bool = False, own: str | None = None
) -> None:
    """Refuse a write that conflicts with what another writer did since.

    ``beginning``: whether the write has no instant yet. ``own``: the request time of the write, if it has completed.

    Raises:
        ConflictError: names the other instant, and the file group or partition.
    """
    _refuse_archived(before, now)
    known = {each.request_time for each in before.timeline.list_completed_writes()} | {own}
    for instant in now.timeline.list_completed_writes():
        if instant.request_time not in known:
            _check_commit(claims, now, instant, beginning=beginning)
    restores = now.timeline.select_completed().select_actions(RESTORE)
    if restores.last is not None and before.timeline.find(restores.last.request_time, RESTORE) is None:
        raise ConflictError(
            "The table was restored since this write loaded it.", hint=_HINT, instant=restores.last.request_time
        )
    _check_plans(claims, before, now)
    for instant, groups in iterate_pending_clusterings(now):
        _refuse_shared(claims.groups & groups, instant)


def _refuse_archived(before: Snapshot, now: Snapshot) -> None:
    """Refuse a write if so many others committed since that some of these commits may be archived by now."""
    writes = before.timeline.select_writes()
    if writes.last is None:
        return
    active = {each.request_time for each in now.timeline.select_writes()}
    saved = {each.request_time for each in now.timeline.select_actions(SAVEPOINT)}
    known = {each.request_time for each in writes}
    # A known commit that is still active proves that nothing newer is archived: archival takes the oldest commits
    # first. It may pass commits with a savepoint, so these prove nothing, unless there is at most one new commit: an
    # archival leaves more.
    if (known - saved) & active or (known & active and len(active - known) <= 1):
        return
    raise ConflictError(
        "Other writers made many commits since this write loaded the table, and the first of them may be archived.",
        hint=_HINT,
        instant=writes.last.request_time,
    )


def _check_commit(claims: Claims, now: Snapshot, instant: Instant, *, beginning: bool) -> None:
    metadata = now.timeline.read_metadata(instant)
    replaced = {(partition, each) for partition, ids in metadata.replaced_file_ids.items() for each in ids}
    _refuse_shared(claims.groups & replaced, instant)
    stats = list(metadata.iterate_stats())
    # While the write begins, a compaction is a conflict in all table versions: it may have removed keys that the write
    # found, and later nothing shows that the log files rest on the old base file.
    if metadata.compacted and now.config.has_logs_named_by_commit and (not beginning or claims.non_blocking):
        _refuse_shared(claims.rewritten & {(stat.partition_path, stat.file_id or "") for stat in stats}, instant)
        return
    if claims.non_blocking:
        _check_buckets(claims, instant, stats)
        return
    _refuse_shared(claims.groups & {(stat.partition_path, stat.file_id or "") for stat in stats}, instant)
    moved = metadata.operation_type == "CLUSTER"  # its new files have no new keys
    inserted = {stat.partition_path for stat in stats if _has_inserts(stat) and not moved}
    both = inserted if claims.new_keys_in is None else inserted & claims.new_keys_in
    if both and claims.looked_up:
        raise ConflictError(
            "Another write has inserted into a partition, perhaps the same new keys.",
            hint=_HINT,
            instant=instant.request_time,
            partition=min(both) or None,
        )


def _check_buckets(claims: Claims, instant: Instant, stats: Collection[WriteStat]) -> None:
    """Refuse a non-blocking write to buckets that got a base file, or another file group, from another write."""
    own = {(partition, parse_bucket(file_id)): file_id for partition, file_id in claims.touched}
    both = set()
    for stat in stats:
        file_id = own.get((stat.partition_path, parse_bucket(stat.file_id or "")))
        if file_id is not None and (stat.file_id != file_id or stat.log_version is None):
            both.add((stat.partition_path, file_id))
    _refuse_shared(both, instant)


def _has_inserts(stat: WriteStat) -> bool:
    """Whether a file contains new keys. A new base file does, even if its writer did not count them."""
    return stat.num_inserts > 0 or (stat.prev_commit == NO_COMMIT and stat.log_version is None)


def _check_plans(claims: Claims, before: Snapshot, now: Snapshot) -> None:
    """Refuse a write whose file groups a pending compaction or log compaction has planned."""
    by_slice = not now.config.has_logs_named_by_commit
    known = {each.request_time for each in before.timeline if each.comparable_action == COMMIT}
    timeline = now.timeline
    for instant in (*timeline.select_pending_compactions(), *timeline.select_pending_log_compactions()):
        # Up to version 6 a plan that is newer than `before` lacks this write's log files. In all versions a replaced
        # group can never be compacted, and the base file of a planned slice must not be rewritten.
        is_new = by_slice and instant.action != LOG_COMPACTION and instant.request_time not in known
        at_stake = claims.groups if is_new else claims.replaced_groups | claims.rewritten
        if at_stake:
            plan = now.timeline.read_pending_plan(instant)
            _refuse_shared(at_stake & {(each.partition_path, each.file_id) for each in plan.operations}, instant)


def _refuse_shared(both: Collection[GroupKey], instant: Instant) -> None:
    if not both:
        return
    partition, file_id = min(both)
    what = "changed" if instant.is_completed else "is about to rewrite"
    raise ConflictError(
        f"Another writer's {instant.action} {what} a file group of this write.",
        hint=_HINT,
        instant=instant.request_time,
        file_group=file_id,
        partition=partition or None,
    )
