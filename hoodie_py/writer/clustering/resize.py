"""What a clustering does to ranges of hashes, checked against those in force (Hudi
``HoodieSparkConsistentBucketIndex.updateLocation``).

Each hash of a planned file group must belong to a new file group of the same group of the plan, and no other hash may
move: else keys would lie where no writer looks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError
from hoodie_py.formats.config.hashing_metadata import GroupResize, HashingMetadata, apply_changes, list_owners
from hoodie_py.formats.timeline.replace_plan import ClusteringGroup, RequestedReplace
from hoodie_py.options.write import BUCKET_HASH_FIELD
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.clustering.bucket_files import BucketTargets
from hoodie_py.writer.transaction.hash_ranges import load_hash_ranges

_HINT = "Roll the clustering back and schedule a new one."


@dataclass(frozen=True, slots=True)
class Resize:
    """The ranges of each partition after a clustering, by partition path, and the changes of each group of its plan."""

    ranges: Mapping[str, HashingMetadata]
    groups: tuple[GroupResize, ...]

    def find_heirs(self, plan: RequestedReplace) -> dict[GroupKey, frozenset[str]]:
        """Return the file ids that the rows of each file group go to."""
        return {
            (piece.partition_path, piece.file_id): frozenset(resize.file_ids)
            for group, resize in zip(plan.groups or (), self.groups, strict=True)
            for piece in group.slices
        }

    def make_targets(self, snapshot: Snapshot, options: Mapping[str, str]) -> list[BucketTargets]:
        """Return where the rows of each group go."""
        config = snapshot.config
        keys = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)
        fields = BUCKET_HASH_FIELD.read(options) or config.record_key_fields
        return [
            BucketTargets(self.ranges[each.partition_path], each.file_ids, tuple(fields), keys) for each in self.groups
        ]


def find_resize(snapshot: Snapshot, plan: RequestedReplace, instant: str) -> Resize | None:
    """Return what a plan does to ranges; None if it says nothing of them.

    Raises:
        ConflictError: the ranges have changed since the plan was made.
        InvalidTableError: the plan does not fit them.
        HoodieError: see ``load_hash_ranges``.
    """
    groups = plan.groups or ()
    try:
        found = [GroupResize.from_extra(each.extra) for each in groups]
        changes = [each for each in found if each is not None]
        if not changes:
            return None
        if len(changes) < len(groups):
            raise InvalidTableError("Invalid plan: a group of the clustering plan says nothing of ranges of hashes.")
        ranges = {
            partition: _apply(
                snapshot,
                partition,
                [pair for pair in zip(groups, changes, strict=True) if pair[1].partition_path == partition],
                instant,
            )
            for partition in sorted({each.partition_path for each in changes})
        }
    except HoodieError as error:
        raise error.locate(instant=instant) from error.__cause__
    return Resize(ranges, tuple(changes))


def _apply(
    snapshot: Snapshot, partition: str, groups: Sequence[tuple[ClusteringGroup, GroupResize]], instant: str
) -> HashingMetadata:
    old = load_hash_ranges(snapshot, partition)
    if old is None:
        raise InvalidTableError("Invalid plan: a partition has no ranges of hashes.", partition=partition or None)
    if any(resize.number != old.number for _, resize in groups):
        raise ConflictError(
            "The ranges of hashes of a partition have changed since the clustering was planned.",
            partition=partition or None,
            hint=_HINT,
        )
    new = apply_changes(old, [change for _, resize in groups for change in resize.changes], instant)
    _check_owners(old, new, groups, partition)
    return new


def _check_owners(
    old: HashingMetadata,
    new: HashingMetadata,
    groups: Sequence[tuple[ClusteringGroup, GroupResize]],
    partition: str,
) -> None:
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for number, (group, resize) in enumerate(groups):
        before.update((piece.file_id, number) for piece in group.slices)
        after.update((file_id, number) for file_id in resize.file_ids)
    known = before.keys() <= set(old.file_ids) and after.keys().isdisjoint(old.file_ids)
    fits = all(
        one == other if one not in before else before[one] == after.get(other) for one, other in list_owners(old, new)
    )
    own = all(piece.partition_path == partition for group, _ in groups for piece in group.slices)
    if not (known and fits and own and after.keys() <= set(new.file_ids)):
        raise InvalidTableError(
            "Invalid plan: hashes of a clustering's file groups would not be those of its new ones.",
            partition=partition or None,
            hint=_HINT,
        )
