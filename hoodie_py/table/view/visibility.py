"""Decides which instants count, for files and for log blocks.

The rules (Hudi ``HoodieDefaultTimeline``, ``AbstractTableFileSystemView``):

* Files count if their instant is a completed commit, deltacommit or replacecommit of the active timeline, or is older
  than the first instant of the active timeline and so was archived. An unfinished instant never counts.
* A completed replacecommit R hides the file groups that it names from queries at R and later. If several name a group,
  the last one decides.
* A pending compaction starts a new slice in every file group of its plan.
* Completion times come from the active timeline or the archive. Below version 8 none are stored, and the request time
  is used instead.

For log blocks of a metadata table the timeline of the table around it decides, as writers update the metadata table
before they commit to that table: a commit of the metadata table alone proves nothing. These instants count (Hudi
``HoodieTableMetadataUtil``):

* completed instants of the table around it;
* completed delta commits of the metadata table itself that are not pending there: those that create partitions;
* commits that completed rollbacks and restores undid there, as the metadata table has entries that undo them. Commits
  before the metadata table's last compaction are in its base files already, so such rollbacks are not read;
* completed rollbacks and restores of the metadata table.

A metadata table in another place than ``.hoodie/metadata`` of a table is read by its own timeline, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from hoodie_py.errors import FileMissingError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.own_instants import BEFORE_ALL
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline import instants
from hoodie_py.formats.timeline.instants import Instant, InstantSet
from hoodie_py.reader.file_slice import BaseFile, BlockRules
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.loader import TableTimeline, load_config

GroupKey = tuple[str, str]


class Visibility:
    """Facts about one loaded timeline; plans and replace commits are read when needed.

    ``around``: the timeline of the table around this metadata table, if it is loaded already.
    """

    def __init__(self, timeline: TableTimeline, around: TableTimeline | None = None) -> None:
        self._table = timeline
        self._around = around
        self._timeline = timeline
        self._writes = self._timeline.select_writes()

    @property
    def logs_carry_base_instant(self) -> bool:
        """Whether log names carry the slice's base instant (table version below 8)."""
        return not self._table.config.has_logs_named_by_commit

    @cached_property
    def last_instant(self) -> str | None:
        """Request time of the last completed write or pending compaction, which means "now"; None without one."""
        last = self._timeline.last_visible
        return last.request_time if last is not None else None

    def is_committed(self, instant: str) -> bool:
        """Say whether files written by ``instant`` count."""
        return self._timeline.is_committed(instant)

    def find_completion_time(self, instant: str, beyond: str) -> str:
        """Return when ``instant`` completed; its request time if no completion time is stored.

        Only the order against ``beyond`` matters, so the archive is not read if the request time decides.
        """
        if self.logs_carry_base_instant or beyond <= instant:
            return instant
        return self._table.find_completion_time(instant) or instant

    def find_pending_compaction(self, key: GroupKey) -> str | None:
        """Return the pending compaction of a file group (partition, file id); None without one."""
        return self._pending_compactions.get(key)

    def is_replaced(self, key: GroupKey, query_instant: str | None) -> bool:
        """Say whether a file group was replaced at or before ``query_instant`` (None: now)."""
        replaced = self.find_replacing_instant(key)
        return replaced is not None and (query_instant is None or replaced <= query_instant)

    def find_replacing_instant(self, key: GroupKey) -> str | None:
        """Return the request time of the replace commit that replaced a file group; None while it is in use."""
        return self._replaced.get(key)

    def pick_base_file(self, partition_path: str, candidates: Sequence[BaseFile]) -> BaseFile:
        """Return the base file that the commit's write statistics name, else the last by name.

        Task retries can leave several base files of one instant in a group, of which only the committed one counts.
        """
        instant = self._writes.find(candidates[0].instant)
        if instant is not None:
            stats = self._table.read_metadata(instant).write_stats.get(partition_path, ())
            named = {stat.path for stat in stats}
            for candidate in candidates:
                if candidate.path in named:
                    return candidate
        return max(candidates, key=lambda file: file.path)

    def make_block_rules(self, query_instant: str | None) -> BlockRules:
        """Return the rules for which log blocks count at ``query_instant``."""
        config = self._table.config
        mixed = config.may_mix_commits_in_logs and not (config.is_metadata_table and config.has_logs_named_by_commit)
        rules = self._rules_by_commit if mixed else BlockRules()
        return replace(rules, query_instant=query_instant, only=self._valid_instants)

    @cached_property
    def _valid_instants(self) -> frozenset[str] | None:
        if not self._table.config.is_metadata_table:
            return None

        return find_valid_instants(self._table, self._around)

    @cached_property
    def _rules_by_commit(self) -> BlockRules:
        completed = InstantSet(instant.request_time for instant in self._writes)
        pending = frozenset(each.request_time for each in self._timeline.select_pending() if each.is_write) - completed
        return BlockRules(None, completed, pending, self._timeline.first_active_time, check_commits=True)

    @cached_property
    def _pending_compactions(self) -> Mapping[GroupKey, str]:
        pending: dict[GroupKey, str] = {}
        for instant in self._timeline.select_pending_compactions():
            for operation in self._table.read_pending_plan(instant).operations:
                pending[operation.partition_path, operation.file_id] = instant.request_time
        return pending

    @cached_property
    def _replaced(self) -> Mapping[GroupKey, str]:
        replaces = [each for each in self._writes if each.comparable_action == "replacecommit"]
        replaced: dict[GroupKey, str] = {}
        for instant, metadata in zip(replaces, self._table.read_all_metadata(replaces), strict=True):
            for partition_path, file_ids in metadata.replaced_file_ids.items():
                for file_id in file_ids:
                    key = (partition_path, file_id)
                    replaced[key] = max(replaced.get(key, ""), instant.request_time)
        return replaced


_PLACE = f"/{METADATA_FOLDER}/metadata"


def find_valid_instants(metadata: TableTimeline, around: TableTimeline | None = None) -> frozenset[str] | None:
    """Return the instants whose log blocks count; None if the metadata table is in no table.

    ``around``: the timeline of the table around it, as a snapshot has loaded it; None to load it here.

    Raises:
        TableNotFoundError: the table around the metadata table has no properties.
        CorruptFileError: a rollback's or restore's file is damaged.
        StorageError: the store refused.
    """
    if around is None:
        place = metadata.files.uri.rstrip("/")
        if not place.endswith(_PLACE):
            return None
        files = metadata.files.open_other(place.removesuffix(_PLACE))
        around = TableTimeline.load(files, load_config(files))
    files, config, timeline = around.files, around.config, around
    valid = {each.request_time for each in timeline.select_completed()}
    own = metadata.select_completed()
    valid |= {each.request_time for each in own.select_actions(instants.DELTA_COMMIT)} - timeline.pending_times
    last = own.select_actions(instants.COMMIT).last
    since = max(min(valid, default=BEFORE_ALL), "" if last is None else last.request_time)
    for undoing in timeline.select_completed().select_actions(instants.ROLLBACK, instants.RESTORE):
        if undoing.request_time > since:
            valid.update(_read_undone(files, config, undoing))
    valid |= {each.request_time for each in own.select_actions(instants.ROLLBACK, instants.RESTORE)}
    return InstantSet(valid)


def _read_undone(files: TableFiles, config: TableConfig, undoing: Instant) -> Iterator[str]:
    """Yield the commits that a completed rollback or restore undid; none if it was archived meanwhile."""
    from hoodie_py.formats.timeline.plans import RollbackMetadata, RollbackPlan
    from hoodie_py.formats.timeline.savepoints import RestoreMetadata

    path = instants.locate_instant(config, undoing)
    with locate_errors(path=path, instant=undoing.request_time):
        try:
            data = read_bounded(files, path)
            if undoing.action == instants.RESTORE:
                for rollback in RestoreMetadata.from_bytes(data).rollbacks:
                    yield from rollback.commits_rolled_back
            elif data:
                yield from RollbackMetadata.from_bytes(data).commits_rolled_back
            else:  # the plan has it, too
                plan = RollbackPlan.from_bytes(read_bounded(files, instants.locate_requested(config, undoing)))
                yield from () if plan.instant is None else (plan.instant.time,)
        except FileMissingError:
            return
