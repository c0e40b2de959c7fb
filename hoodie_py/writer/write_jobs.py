"""From placed records to the tasks that write them: a log file, a new base file, or a rewritten one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hoodie_py.formats.commit_metadata import WriteStat
from hoodie_py.formats.option_keys import flag
from hoodie_py.formats.write_keys import RECORD_POSITIONS
from hoodie_py.reader.delete_rules import DeleteRules
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.reader.selection import select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.append_task import FIRST_VERSION_OF_FREE_LOGS, AppendTask
from hoodie_py.writer.data_file import CommitFacts
from hoodie_py.writer.insert_task import NO_COMMIT, InsertTask
from hoodie_py.writer.rewrite_task import RewriteTask
from hoodie_py.writer.routing import Placement, Routed
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.write_runner import Job


@dataclass(frozen=True, slots=True)
class Tasks:
    """Makes the tasks of one commit.

    Args:
        snapshot: the table that records were placed by.
        facts: of the commit.
        settings: of the call.
        merger: decides instead of the table's merge mode.
    """

    snapshot: Snapshot
    facts: CommitFacts
    settings: WriteSettings
    merger: RecordMerger | type[RecordMerger] | None = None

    def jobs(self, routed: Routed) -> Iterator[Job]:
        """Yield one job for each placement.

        Raises:
            MergeError: the table needs a merger that nobody supplied.
        """
        custom = select_strategy(self.snapshot.config, self.settings.options, self.merger, writing=True).merger
        hooked = custom is not None and type(custom).insert_batch is not RecordMerger.insert_batch
        for index, placement in enumerate(routed.placements):
            if placement.file_slice is None and not hooked:
                yield self._insert(index, routed, placement)
            elif placement.file_slice is None or not self.snapshot.config.is_merge_on_read:
                yield self._rewrite(index, routed, placement)
            else:
                yield self._append(index, routed, placement, custom)

    def _insert(self, index: int, routed: Routed, placement: Placement) -> Job:
        task = InsertTask(self.facts, index, placement.partition_path, placement.file_id)
        return Job(lambda: task.run([routed.of(placement)]), len(placement))

    def _rewrite(self, index: int, routed: Routed, placement: Placement) -> Job:
        old = placement.file_slice
        if old is None:
            old = FileSlice(placement.partition_path, placement.file_id, self.facts.instant, None, ())
        schema = self.facts.schema
        info = self.snapshot.read_info(old).as_stored(schema.arrow, schema.defaults)
        options = ReadOptions(options=self.settings.options)
        task = RewriteTask(self.facts, index, old, info, self.merger, options)
        return Job(lambda: task.run(routed.of(placement)), _base_size(old) // 100 + len(placement))

    def _append(self, index: int, routed: Routed, placement: Placement, custom: RecordMerger | None) -> Job:
        assert placement.file_slice is not None
        of = placement.positions_of
        task = append_task(self.snapshot, self.facts, self.settings, placement.file_slice, index, of)
        if custom is not None:
            config = self.facts.config
            rules = DeleteRules.of(self.facts.schema.arrow, config.merge_properties, self.settings.options)
            task = replace(task, delete_rules=rules)
        positions = routed.positions_of(placement)
        inserts = placement.inserts
        return Job(lambda: task.run(routed.of(placement), positions, inserts), len(placement))


def append_task(
    snapshot: Snapshot,
    facts: CommitFacts,
    settings: WriteSettings,
    file_slice: FileSlice,
    index: int,
    positions_of: str | None = None,
) -> AppendTask:
    """Return the task that adds a log file to a slice.

    Args:
        snapshot: the table as the slice is of.
        facts: of the commit.
        settings: of the call.
        file_slice: what there is of the file group.
        index: number of the task.
        positions_of: instant of the base file that row numbers are about.
    """
    key = file_slice.partition_path, file_slice.file_id
    base = file_slice.base_file
    instant = snapshot.view.visibility.pending_compaction(key) or file_slice.base_instant
    version, logs = 1, [log.name.name for log in file_slice.log_files if log.name.instant == instant]
    if facts.config.version < FIRST_VERSION_OF_FREE_LOGS:
        groups = {group.key: group for group in snapshot.view.file_groups([file_slice.partition_path])}
        taken = [log.name.version for log in groups[key].log_files if log.name.instant == instant]
        version = max(taken, default=0) + 1
    wanted = flag(settings.options, RECORD_POSITIONS, default=True)
    return AppendTask(
        facts=facts,
        index=index,
        partition_path=key[0],
        file_id=key[1],
        base_instant=instant,
        version=version,
        base_file=None if base is None else base.name,
        log_files=tuple(logs),
        positions_of=positions_of if wanted else None,
    )


def workload(routed: Routed) -> dict[str, tuple[WriteStat, ...]]:
    """Return what the inflight file says: inserts of each partition, then updates of each file group (Hudi
    ``WorkloadProfile``).
    """
    inserts: dict[str, int] = {}
    updates: dict[str, list[WriteStat]] = {}
    for each in routed.placements:
        inserts.setdefault(each.partition_path, 0)
        if each.file_slice is None:
            inserts[each.partition_path] += each.inserts
            continue
        base = each.file_slice.base_file
        stat = WriteStat(
            file_id=each.file_id,
            path=None,
            prev_commit=NO_COMMIT if base is None else base.instant,
            num_update_writes=len(each),
        )
        updates.setdefault(each.partition_path, []).append(stat)
    new = {path: WriteStat(file_id="", path=None, prev_commit=NO_COMMIT, num_inserts=n) for path, n in inserts.items()}
    return {path: (stat, *updates.get(path, ())) for path, stat in new.items()}


def _base_size(file_slice: FileSlice) -> int:
    return 0 if file_slice.base_file is None else file_slice.base_file.size
