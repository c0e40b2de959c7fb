"""How one goes on after an operation was cut short, and what must hold then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from hoodie_py import HoodieTable, TableFiles
from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from integration.crash import checks
from integration.crash.operations import (
    INDEX,
    WRITES,
    Operation,
    Subject,
    build_index,
    change_version,
    count_commits,
    delete_savepoint,
    drop_index,
    is_commit,
    list_instants,
    log_compact,
    restore,
    rollback,
    savepoint,
    schedule,
)
from integration.crash.stores import open_table


def recover(files: TableFiles, operation: Operation, subject: Subject, *, undo_first: bool) -> None:
    """Go on after the operation was cut short, as the documentation says: run it again, perhaps after a rollback."""
    if operation.keeps:
        if bool(open_table(files).savepoints()) != (operation.act is savepoint):
            operation.act(open_table(files), subject)
        return
    if operation.removes or operation.archives:
        operation.act(open_table(files), subject)
        return
    if operation.undoes_a_write:
        if any(each.request_time == subject.instant for each in open_table(files).timeline.select_pending()):
            rollback(open_table(files), subject)
        return
    for _ in range(2 if undo_first else 0):  # back to requested, then gone
        pending = _find_plan(open_table(files), operation)
        if pending is not None:
            open_table(files).rollback(pending, subject.options)
    if operation.folds:
        log_compact(open_table(files), subject)  # finds nothing where it had ended
        return
    table = open_table(files)
    if count_commits(table.timeline, operation) > subject.commits:
        # finds nothing, and removes what a run that ended too early left
        if table.config.is_merge_on_read:
            schedule(table, subject)
        else:
            table.schedule_clustering({**subject.options, "hoodie.clustering.plan.strategy.small.file.limit": "1"})
        return
    pending = _find_plan(table, operation)
    if operation.clusters:
        if pending is None:
            table.cluster(LocalEngine(1), options=subject.options)
        else:
            with suppress(InvalidQueryError):  # a rollback of it had begun, which the run finished
                table.run_clustering(pending, LocalEngine(1), subject.options)
                return
            open_table(files).cluster(LocalEngine(1), options=subject.options)
    elif pending is None:
        table.compact(LocalEngine(1), options=subject.options)
    else:
        table.run_compaction(pending, LocalEngine(1), subject.options)


def _find_plan(table: HoodieTable, operation: Operation) -> str | None:
    timeline = table.timeline
    pending = timeline.select_pending_compactions()
    if operation.clusters:
        pending = timeline.select_pending_replacements()
    if operation.folds:
        pending = timeline.select_pending_log_compactions()
    return None if pending.last is None else pending.last.request_time


def problems(
    files: TableFiles,
    operation: Operation,
    subject: Subject,
    before: str,
    sizes: Callable[[], dict[str, int]],
    *,
    undo_first: bool,
    go_on: Callable[[], None],
) -> list[str]:
    """Check the table, go on, check again, and return what was not as it must be.

    Args:
        files: the table's.
        operation: that was cut short.
        subject: of it.
        before: digest of the rows.
        sizes: returns the files that are there.
        undo_first: whether to roll back before running again.
        go_on: called between; lets time pass.
    """
    apart = _CHECKED_APART.get(operation.act)
    if apart is not None:
        return apart(files, subject, before, sizes, go_on)
    found = []
    if checks.rows(files, timeless=operation.folds) != before:
        found.append("the rows are others after the fault")
    if operation.archives and list_instants(files) != subject.instants:
        found.append("instants are lost, or there twice, after the fault")
    if checks.orphans(open_table(files)._snapshot, sizes()):
        found.append("an orphan is visible after the fault")
    go_on()
    recover(files, operation, subject, undo_first=undo_first)
    table = open_table(files)
    there = sizes()
    snapshot = table._snapshot
    if checks.rows(files, timeless=operation.folds) != before:
        found.append("the rows are others after the re-run")
    commits_once = not (operation.removes or operation.undoes_a_write or operation.archives or operation.keeps)
    if commits_once and not operation.folds and checks.rows(files, "read_optimized") != before:
        found.append("the compacted rows are others")
    commits = count_commits(table.timeline, operation)
    if operation.archives:
        if list_instants(files) != subject.instants:
            found.append("instants are lost, or there twice")
    elif commits != subject.commits + commits_once:
        found.append(f"there are {commits} commits, there were {subject.commits}")
    times = {each.request_time for each in table.timeline.select_pending()}
    pending = [each for each in times if each > subject.newest or each == subject.instant]
    if pending:
        found.append(f"still pending: {pending}")
    found += [f"orphan {path}" for path in checks.orphans(snapshot, there)]
    since = subject.newest if not operation.pending else min(subject.newest, _before(subject.instant))
    if operation.folds:  # its files are log files, whose names do not tell the instant on all versions
        found += [f"wrong in the metadata table: {each}" for each in table.verify(data=False).findings]
    else:
        found += checks.metadata_faults(snapshot, there, since)
    if operation.keeps:
        found += _problems_of_savepoint(table, operation, there)
    found += checks.astray(files)
    found += [f"left over: {path}" for path in there if "/.temp/" in path and not path.endswith(checks.SCRATCH)]
    return found


def problems_of_restore(
    files: TableFiles, subject: Subject, before: str, sizes: Callable[[], dict[str, int]], go_on: Callable[[], None]
) -> list[str]:
    """Check the table, finish the restore, check again; arguments as for ``problems``.

    While a restore is pending a reader sees a state between; no other writer begins.
    """
    found = []
    table, rows = open_table(files), checks.rows(files)
    pending = any(each.action == "restore" for each in table.timeline.select_pending())
    if not pending and rows not in (before, subject.saved_rows):
        found.append("the rows are neither those of before nor those of the savepoint")
    go_on()
    if pending:
        with suppress(ConflictError, UnsupportedFeatureError):
            table.clean(1, subject.options)
            found.append("another writer began beside the restore")
    restore(open_table(files), subject)
    table, there = open_table(files), sizes()
    if checks.rows(files) != subject.saved_rows:
        found.append("the rows are not those of the savepoint")
    commits = sum(map(is_commit, table.timeline))
    if commits != subject.saved_commits:
        found.append(f"there are {commits} commits, the savepoint had {subject.saved_commits}")
    found += [f"still pending: {each}" for each in table.timeline.select_pending()]
    found += [f"orphan {path}" for path in checks.orphans(table._snapshot, there)]
    undone = {instant for instant, action in subject.instants if action in WRITES and instant > subject.savepoint}
    found += [f"{path} is there" for path in there if checks.is_data_file(path) and undone & set(_times(path))]
    found += checks.astray(files)
    found += [f"wrong in the metadata table: {each}" for each in table.verify(data=False).findings]
    return found + [f"left over: {path}" for path in there if "/.temp/" in path and not path.endswith(checks.SCRATCH)]


def problems_of_change(
    files: TableFiles, subject: Subject, before: str, sizes: Callable[[], dict[str, int]], go_on: Callable[[], None]
) -> list[str]:
    """Check the table in whichever version it is, finish the change of version, check again; else as ``problems``."""
    found = []
    if checks.rows(files) != before:
        found.append("the rows are others after the fault")
    go_on()
    change_version(open_table(files), subject)
    table, there = open_table(files), sizes()
    if table.config.version != subject.other_version:
        found.append(f"the table has version {table.config.version}")
    if checks.rows(files) != before:
        found.append("the rows are others after the re-run")
    now = list_instants(files)
    if len(set(now)) < len(now) or not set(subject.instants) <= set(now):
        found.append("instants are lost, or there twice")
    pending = [each for each in table.timeline.select_pending() if each.action not in ("clustering", "replacecommit")]
    found += [f"still pending: {each}" for each in pending]
    found += [f"orphan {path}" for path in checks.orphans(table._snapshot, there)]
    found += [f"wrong in the metadata table: {each}" for each in table.verify(data=False).findings]
    return found + [f"left over: {path}" for path in there if "/.temp/" in path and not path.endswith(checks.SCRATCH)]


def problems_of_index(
    act: Callable[[HoodieTable, Subject], object],
    files: TableFiles,
    subject: Subject,
    before: str,
    sizes: Callable[[], dict[str, int]],
    go_on: Callable[[], None],
) -> list[str]:
    """Check the table, build or drop the index again where that is still to do, check again; else as ``problems``."""
    wanted = act is build_index
    found = [] if checks.rows(files) == before else ["the rows are others after the fault"]
    go_on()
    if (INDEX in open_table(files).config.metadata_partitions) != wanted:
        act(open_table(files), subject)
    table, there = open_table(files), sizes()
    if checks.rows(files) != before:
        found.append("the rows are others after the re-run")
    if (INDEX in table.config.metadata_partitions) != wanted or INDEX in table.config.metadata_partitions_inflight:
        found.append("the index is not as it must be")
    pending = [each for each in table.timeline.select_pending() if each.request_time > subject.newest]
    found += [f"still pending: {each}" for each in pending]
    found += [f"orphan {path}" for path in checks.orphans(table._snapshot, there)]
    found += [f"wrong in the metadata table: {each}" for each in table.verify(data=False).findings]
    return found + [f"left over: {path}" for path in there if "/.temp/" in path and not path.endswith(checks.SCRATCH)]


def _problems_of_savepoint(table: HoodieTable, operation: Operation, there: Mapping[str, int]) -> list[str]:
    kept = [path for path in there if ".savepoint" in path and not path.endswith((checks.SCRATCH, ".crc"))]
    saved = [each.comment for each in table.savepoints()]
    if operation.act is savepoint and (saved != ["kept"] or len(kept) != 2):
        return [f"there are savepoints {saved} in {kept}"]
    return [f"left over: {path}" for path in kept] if operation.act is delete_savepoint else []


def scratch(sizes: Mapping[str, int]) -> list[str]:
    """Return files under a scratch name, which nobody reads: a process died while it wrote them."""
    return [path for path in sizes if path.endswith(checks.SCRATCH)]


def _before(instant: str) -> str:
    return str(int(instant) - 1).zfill(len(instant)) if instant else ""


def _times(path: str) -> list[str]:
    return re.findall(r"(?<!\d)\d{17}(?!\d)", path.rpartition("/")[2])


_CHECKED_APART: Mapping[Callable[..., object], Callable[..., list[str]]] = {
    restore: problems_of_restore,
    change_version: problems_of_change,
    build_index: partial(problems_of_index, build_index),
    drop_index: partial(problems_of_index, drop_index),
}
