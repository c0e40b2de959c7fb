"""What is cut short: each operation with the state it starts from, and how one goes on afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hoodie_py import HoodieTable, TableFiles
from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.compaction.local_runner import LocalRunner
from integration.crash import checks
from integration.crash.stores import open_table

QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
OTHERS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.wait_time_ms": "2000",
    "hoodie.write.lock.wait_time_ms_between_retry": "20",
}
KEEP_ONE = {  # and nothing else that would stay: the tables have few commits
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "1",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED",
    "hoodie.timeline.compaction.batch.size": "2",
}
LOCKS: Mapping[str, Mapping[str, str]] = {
    "machine": {},
    "file": OTHERS
    | {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
        "hoodie.write.lock.filesystem.expire": "30",
    },
    "object": OTHERS
    | {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"},
}
"""Options of a writer, by the lock it takes; with the first one it is alone."""


@dataclass(frozen=True)
class Subject:
    """What an operation is about: options of the writer, the instant that was pending when it began, and all completed
    ones, archived or not.
    """

    options: Mapping[str, str]
    instant: str = ""
    commits: int = 0
    newest: str = ""
    instants: tuple[tuple[str, str], ...] = ()


def schedule(table: HoodieTable, subject: Subject) -> Any:
    return table.schedule_compaction(options=subject.options)


def run(table: HoodieTable, subject: Subject) -> Any:
    return table.run_compaction(subject.instant or None, LocalRunner(1), subject.options)


def plan_clustering(table: HoodieTable, subject: Subject) -> Any:
    return table.schedule_clustering({**subject.options, "hoodie.clustering.plan.strategy.sort.columns": "id"})


def cluster(table: HoodieTable, subject: Subject) -> Any:
    return table.run_clustering(subject.instant or None, LocalRunner(1), subject.options)


def rollback(table: HoodieTable, subject: Subject) -> Any:
    return table.rollback(subject.instant, subject.options)


def clean(table: HoodieTable, subject: Subject) -> Any:
    return table.clean(1, subject.options)


def archive(table: HoodieTable, subject: Subject) -> Any:
    return table.archive({**KEEP_ONE, **subject.options})


@dataclass(frozen=True)
class Operation:
    """One thing to do to a table.

    Attributes:
        name: of it in reports.
        act: does it.
        setup: what is done to a table before, step by step; "schedule!commit" is a step that dies right before the
            file is made whose name ends so; "-deltacommit" takes the newest completed one back to pending.
        pending: action of the instant that it is about; "clustering" is a replace commit up to table version 6.
        done: how the name of a file ends that is there once the operation has returned, and was not before; None where
            it rather takes files away.
    """

    name: str
    act: Callable[[HoodieTable, Subject], Any]
    setup: tuple[str, ...] = ()
    pending: str = ""
    done: str | None = None

    @property
    def removes(self) -> bool:
        """Whether data files may go."""
        return self.act is clean

    @property
    def archives(self) -> bool:
        """Whether instants leave the active timeline."""
        return self.act is archive

    @property
    def clusters(self) -> bool:
        """Whether it is about a clustering; else, if it is about a plan, about a compaction."""
        return self.pending == "clustering" or self.act is plan_clustering

    @property
    def commits_as(self) -> str:
        """The action that the table has one more of once the plan is carried out."""
        return "replacecommit" if self.clusters else "commit"

    @property
    def undoes_a_write(self) -> bool:
        return self.pending == "deltacommit"


OPERATIONS = {
    each.name: each
    for each in (
        Operation("schedule", schedule, done=".compaction.requested"),
        Operation("run", run, ("schedule",), "compaction", ".commit"),
        Operation("run again", run, ("schedule", "run!.commit"), "compaction", ".commit"),
        Operation("rollback of a run", rollback, ("schedule", "run!.commit"), "compaction"),
        Operation("rollback of a plan", rollback, ("schedule",), "compaction"),
        Operation("rollback of a write", rollback, ("-deltacommit",), "deltacommit"),
        Operation("plan a clustering", plan_clustering, done=".requested"),
        Operation("cluster", cluster, ("plan_clustering",), "clustering", ".replacecommit"),
        Operation(
            "cluster again", cluster, ("plan_clustering", "cluster!.replacecommit"), "clustering", ".replacecommit"
        ),
        Operation("rollback of a clustering", rollback, ("plan_clustering", "cluster!.replacecommit"), "clustering"),
        Operation("rollback of a clustering plan", rollback, ("plan_clustering",), "clustering"),
        Operation("clean", clean, ("schedule", "run"), done=".clean"),
        Operation("clean again", clean, ("schedule", "run", "clean!.clean"), done=".clean"),
        Operation("archive", archive, ("schedule", "run")),
    )
}
STEPS = {
    "schedule": schedule, "run": run, "clean": clean, "archive": archive, "plan_clustering": plan_clustering,
    "cluster": cluster,
}  # fmt: skip
_ACTIONS = {"clustering": ("clustering", "replacecommit")}


def subject_of(files: TableFiles, operation: Operation, options: Mapping[str, str]) -> Subject:
    """Look at the table before the operation."""
    timeline = open_table(files).timeline
    pending = [
        each.request_time
        for each in timeline.select_pending()
        if each.action in _ACTIONS.get(operation.pending, (operation.pending,))
    ]
    return Subject(
        options=options,
        instant=pending[-1] if pending else "",
        commits=_commits(timeline, operation),
        newest=max((max(each.request_time, each.completion_time or "") for each in timeline), default=""),
        instants=_instants(files),
    )


def recover(files: TableFiles, operation: Operation, subject: Subject, *, undo_first: bool) -> None:
    """Go on after the operation was cut short, as the documentation says: run it again, perhaps after a rollback."""
    if operation.removes:
        clean(open_table(files), subject)
        return
    if operation.archives:
        archive(open_table(files), subject)
        return
    if operation.undoes_a_write:
        if any(each.request_time == subject.instant for each in open_table(files).timeline.select_pending()):
            rollback(open_table(files), subject)
        return
    for _ in range(2 if undo_first else 0):  # back to requested, then gone
        pending = _find_plan(open_table(files), operation)
        if pending is not None:
            open_table(files).rollback(pending, subject.options)
    table = open_table(files)
    if _commits(table.timeline, operation) > subject.commits:
        schedule(table, subject)  # finds nothing, and removes what a run that ended too early left
        return
    pending = _find_plan(table, operation)
    if operation.clusters:
        if pending is None:
            table.cluster(LocalRunner(1), options=subject.options)
        else:
            with suppress(InvalidQueryError):  # a rollback of it had begun, which the run finished
                table.run_clustering(pending, LocalRunner(1), subject.options)
                return
            open_table(files).cluster(LocalRunner(1), options=subject.options)
    elif pending is None:
        table.compact(LocalRunner(1), options=subject.options)
    else:
        table.run_compaction(pending, LocalRunner(1), subject.options)


def _find_plan(table: HoodieTable, operation: Operation) -> str | None:
    timeline = table.timeline
    pending = timeline.select_pending_replacements() if operation.clusters else timeline.select_pending_compactions()
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
    found = []
    if checks.rows(files) != before:
        found.append("the rows are others after the fault")
    if operation.archives and _instants(files) != subject.instants:
        found.append("instants are lost, or there twice, after the fault")
    if checks.orphans(open_table(files)._snapshot, sizes()):
        found.append("an orphan is visible after the fault")
    go_on()
    recover(files, operation, subject, undo_first=undo_first)
    table = open_table(files)
    there = sizes()
    snapshot = table._snapshot
    if checks.rows(files) != before:
        found.append("the rows are others after the re-run")
    compacts = not operation.removes and not operation.undoes_a_write and not operation.archives
    if compacts and checks.rows(files, "read_optimized") != before:
        found.append("the compacted rows are others")
    commits = _commits(table.timeline, operation)
    if operation.archives:
        if _instants(files) != subject.instants:
            found.append("instants are lost, or there twice")
    elif commits != subject.commits + (1 if compacts else 0):
        found.append(f"there are {commits} commits, there were {subject.commits}")
    times = {each.request_time for each in table.timeline.select_pending()}
    pending = [each for each in times if each > subject.newest or each == subject.instant]
    if pending:
        found.append(f"still pending: {pending}")
    found += [f"orphan {path}" for path in checks.orphans(snapshot, there)]
    since = subject.newest if not operation.pending else min(subject.newest, _before(subject.instant))
    found += checks.metadata_faults(snapshot, there, since)
    found += [f"left over: {path}" for path in there if "/.temp/" in path and not path.endswith(".tmp")]
    return found


def scratch(sizes: Mapping[str, int]) -> list[str]:
    """Return files under a scratch name, which nobody reads: a process died while it wrote them."""
    return [path for path in sizes if path.endswith(".tmp")]


def _instants(files: TableFiles) -> tuple[tuple[str, str], ...]:
    """Return request time and action of all completed instants, active and archived ones."""
    found = open_table(files).inspect.timeline(archived=True).to_pylist()
    return tuple((each["request_time"], each["action"]) for each in found if each["state"] == "completed")


def _before(instant: str) -> str:
    return str(int(instant) - 1).zfill(len(instant)) if instant else ""


def _commits(timeline: Any, operation: Operation) -> int:
    return sum(each.is_completed and each.action == operation.commits_as for each in timeline)
