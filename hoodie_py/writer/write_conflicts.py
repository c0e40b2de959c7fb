"""What must not have happened to a table between the look that a write rests on and its commit (Hudi
``SimpleConcurrentFileWritesConflictResolutionStrategy``).

Another commit that wrote to, or did away with, a file group of ours is a conflict. A compaction is none from table
version 8 on: a log file belongs to the slice at its completion. Before, log files carry the slice's base instant, so a
compaction planned or done meanwhile would lose them. Two writes that found a key nowhere would both insert it: where
new keys went into a partition, another write's inserts there are a conflict too, which Java does not look at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hoodie_py.errors import ConflictError
from hoodie_py.formats.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.formats.instants import COMMIT, RESTORE, Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.compaction_strategy import GroupKey

_HINT = "Try again: the next attempt looks at the table anew."


@dataclass(frozen=True, slots=True)
class Claims:
    """What a write lays hands on.

    Attributes:
        touched: file groups that get a new file.
        replaced: file groups that the write does away with, by partition path.
        new_keys_in: partitions that get new keys; None where only the tasks will know.
        looked_up: whether those were found nowhere, so that nobody else may insert them meanwhile.
    """

    touched: frozenset[GroupKey] = frozenset()
    replaced: Mapping[str, tuple[str, ...]] | None = None
    new_keys_in: frozenset[str] | None = frozenset()
    looked_up: bool = True

    @property
    def changes_keys(self) -> bool:
        """Whether keys come, or go otherwise than by deletes."""
        return self.new_keys_in is None or bool(self.new_keys_in) or self.replaced is not None

    @property
    def groups(self) -> frozenset[GroupKey]:
        """All file groups whose state the write rests on."""
        return self.touched | self.replaced_groups

    @property
    def replaced_groups(self) -> frozenset[GroupKey]:
        """File groups that are replaced."""
        return frozenset((partition, each) for partition, ids in (self.replaced or {}).items() for each in ids)


def check_conflicts(
    claims: Claims, before: Snapshot, now: Snapshot, *, beginning: bool = False, own: str | None = None
) -> None:
    """Refuse to go on where another writer came between.

    Args:
        claims: what the write lays hands on.
        before: the table that it rests on.
        now: the table as it is.
        beginning: whether the write has no instant yet: then a compaction counts as well, as it may have removed keys
            that the write found, and nothing would tell later that its log files still rest on the old base file.
        own: request time of the write, where it has completed.

    Raises:
        ConflictError: names the other instant, and the file group or partition.
    """
    known = {each.request_time for each in before.timeline.list_completed_writes()} | {own}
    for instant in now.timeline.list_completed_writes():
        if instant.request_time not in known:
            _check_commit(claims, now, instant, beginning=beginning)
    restores = now.timeline.timeline.select_completed().select_actions(RESTORE)
    if restores.last is not None and before.timeline.timeline.find(restores.last.request_time, RESTORE) is None:
        raise ConflictError("The table was restored meanwhile.", hint=_HINT, instant=restores.last.request_time)
    _check_plans(claims, before, now)
    for instant, groups in iterate_pending_clusterings(now):
        _refuse_shared(claims.groups & groups, instant)


def iterate_pending_clusterings(snapshot: Snapshot) -> Iterator[tuple[Instant, frozenset[GroupKey]]]:
    """Yield clusterings that have not completed, with the file groups they will replace."""
    for instant in snapshot.timeline.timeline.select_pending_replacements():
        plan = snapshot.timeline.read_replace_plan(instant)
        if plan.is_clustering:
            yield instant, frozenset(plan.iterate_file_groups())


def _check_commit(claims: Claims, now: Snapshot, instant: Instant, *, beginning: bool) -> None:
    metadata = now.timeline.read_metadata(instant)
    replaced = {(partition, each) for partition, ids in metadata.replaced_file_ids.items() for each in ids}
    _refuse_shared(claims.groups & replaced, instant)
    if metadata.compacted and now.config.has_logs_named_by_commit and not beginning:
        return
    stats = list(metadata.iterate_stats())
    _refuse_shared(claims.groups & {(stat.partition_path, stat.file_id or "") for stat in stats}, instant)
    inserted = {stat.partition_path for stat in stats if _has_inserts(stat)}
    both = inserted if claims.new_keys_in is None else inserted & claims.new_keys_in
    if both and claims.looked_up:
        raise ConflictError(
            "Another write inserted into a partition meanwhile, perhaps the same new keys.",
            hint=_HINT,
            instant=instant.request_time,
            partition=min(both) or None,
        )


def _has_inserts(stat: WriteStat) -> bool:
    """Whether a file has new keys; not every writer counts them."""
    return stat.num_inserts > 0 or (stat.prev_commit == NO_COMMIT and stat.log_version is None)


def _check_plans(claims: Claims, before: Snapshot, now: Snapshot) -> None:
    """Check what pending compactions plan: groups that are replaced could never be compacted, and up to version 6 a new
    plan does not have our log files.
    """
    by_slice = not now.config.has_logs_named_by_commit
    known = {each.request_time for each in before.timeline.timeline if each.comparable_action == COMMIT}
    for instant in now.timeline.timeline.select_pending_compactions():
        is_new = by_slice and instant.request_time not in known
        at_stake = claims.groups if is_new else claims.replaced_groups
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
