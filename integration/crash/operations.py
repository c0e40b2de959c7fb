"""What is cut short: each operation with the state it starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hoodie_py import HoodieTable, TableFiles
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.services.log_compaction import LogCompaction
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
SPLIT = {  # every bucket of consistent hashing, until there are 8
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.bucket.index.split.threshold": "0.0000001",
}
INDEX = "bloom_filters"
"""The index that is built and dropped."""

FEW_BLOCKS = {"hoodie.log.compaction.blocks.threshold": "2"}
LOG_COMPACTION = "logcompaction"
_LOGS, _FOLDING = ("change", "change"), "log_compact!.deltacommit"
_LAST_VERSION = 9
WRITES = ("commit", "deltacommit", "replacecommit")
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
    """What an operation is about.

    Attributes:
        options: of the writer.
        instant: that was pending when it began.
        commits: how many there were of the operation's kind.
        newest: the latest time of the timeline.
        instants: all completed ones, archived or not.
        savepoint: the table's newest one.
        saved_rows: digest of the rows of the savepoint.
        saved_commits: how many writes there were until then.
        version: of the table.
    """

    options: Mapping[str, str]
    instant: str = ""
    commits: int = 0
    newest: str = ""
    instants: tuple[tuple[str, str], ...] = ()
    savepoint: str = ""
    saved_rows: str = ""
    saved_commits: int = 0
    version: int = 9

    @property
    def other_version(self) -> int:
        """The version that the table is brought to, over all steps."""
        return 6 if self.version == _LAST_VERSION else _LAST_VERSION


def schedule(table: HoodieTable, subject: Subject) -> Any:
    return table.schedule_compaction(options=subject.options)


def run(table: HoodieTable, subject: Subject) -> Any:
    return table.run_compaction(subject.instant or None, LocalEngine(1), subject.options)


def plan_clustering(table: HoodieTable, subject: Subject) -> Any:
    return table.schedule_clustering({**subject.options, **SPLIT, "hoodie.clustering.plan.strategy.sort.columns": "id"})


def cluster(table: HoodieTable, subject: Subject) -> Any:
    return table.run_clustering(subject.instant or None, LocalEngine(1), subject.options)


def rollback(table: HoodieTable, subject: Subject) -> Any:
    return table.rollback(subject.instant, subject.options)


def clean(table: HoodieTable, subject: Subject) -> Any:
    return table.clean(1, subject.options)


def archive(table: HoodieTable, subject: Subject) -> Any:
    return table.archive({**KEEP_ONE, **subject.options})


def plan_log_compaction(table: HoodieTable, subject: Subject) -> Any:
    return LogCompaction().schedule(table._open_session({**FEW_BLOCKS, **subject.options}, None))


def log_compact(table: HoodieTable, subject: Subject) -> Any:
    return table.log_compact(LocalEngine(1), {**FEW_BLOCKS, **subject.options})


def savepoint(table: HoodieTable, subject: Subject) -> Any:
    return table.savepoint(comment="kept", options=subject.options)


def delete_savepoint(table: HoodieTable, subject: Subject) -> Any:
    return table.delete_savepoint(subject.savepoint, subject.options)


def restore(table: HoodieTable, subject: Subject) -> Any:
    return table.restore(subject.savepoint, subject.options)


def build_index(table: HoodieTable, subject: Subject) -> Any:
    return table.index.build(INDEX, options=subject.options)


def drop_index(table: HoodieTable, subject: Subject) -> Any:
    return table.index.drop(INDEX, options=subject.options)


def change_version(table: HoodieTable, subject: Subject) -> Any:
    to = subject.other_version
    change = table.upgrade if to >= table.config.version else table.downgrade
    return change(to, options=subject.options)


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
        return self.act in (clean, restore)

    @property
    def folds(self) -> bool:
        """Whether it is about a log compaction."""
        return self.pending == LOG_COMPACTION or self.act in (log_compact, plan_log_compaction)

    @property
    def keeps(self) -> bool:
        """Whether it is about a savepoint, and changes nothing else."""
        return self.act in (savepoint, delete_savepoint)

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
        return "replacecommit" if self.clusters else "deltacommit" if self.folds else "commit"

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
        Operation("archive writes", archive, ("change", "change")),
        Operation("plan a log compaction", plan_log_compaction, _LOGS, done=".logcompaction.requested"),
        Operation("log compact", log_compact, _LOGS, done=".deltacommit"),
        Operation("log compact again", log_compact, (*_LOGS, _FOLDING), LOG_COMPACTION, ".deltacommit"),
        Operation("rollback of a log compaction", rollback, (*_LOGS, _FOLDING), LOG_COMPACTION),
        Operation("rollback of a log compaction plan", rollback, (*_LOGS, "plan_log_compaction"), LOG_COMPACTION),
        Operation("savepoint", savepoint, done=".savepoint"),
        Operation("delete a savepoint", delete_savepoint, ("savepoint",)),
        Operation("build an index", build_index),
        Operation("build an index beside plans", build_index, ("schedule", "plan_clustering")),
        Operation("drop an index", drop_index, ("build_index",)),
        Operation("restore", restore, ("savepoint", "change", "schedule", "run", "change"), done=".restore"),
        Operation("restore writes", restore, ("savepoint", "change", "change"), done=".restore"),
        Operation("restore again", restore, ("savepoint", "change", "change", "restore!.restore"), "restore"),
        Operation("change of version", change_version),
        Operation("change of version beside plans", change_version, ("schedule", "plan_clustering")),
        Operation("restore past a plan", restore, ("savepoint", "change", "plan_clustering"), done=".restore"),
        Operation(
            "restore past a clustering", restore, ("savepoint", "plan_clustering", "cluster", "change"), done=".restore"
        ),
    )
}
STEPS = {
    "schedule": schedule, "run": run, "clean": clean, "archive": archive, "plan_clustering": plan_clustering,
    "cluster": cluster, "plan_log_compaction": plan_log_compaction, "log_compact": log_compact, "savepoint": savepoint,
    "build_index": build_index,
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
    table = open_table(files)
    saved = [each.instant for each in table.savepoints()]
    kept = saved[-1] if saved else ""
    return Subject(
        version=table.config.version,
        savepoint=kept,
        saved_rows=checks.rows(files, as_of=kept) if kept else "",
        saved_commits=sum(is_commit(each) and each.request_time <= kept for each in timeline),
        options=options,
        instant=pending[-1] if pending else "",
        commits=count_commits(timeline, operation),
        newest=max((max(each.request_time, each.completion_time or "") for each in timeline), default=""),
        instants=list_instants(files),
    )


def list_instants(files: TableFiles) -> tuple[tuple[str, str], ...]:
    """Return request time and action of all completed instants, active and archived ones."""
    found = open_table(files).inspect.timeline(archived=True).to_pylist()
    return tuple((each["request_time"], each["action"]) for each in found if each["state"] == "completed")


def count_commits(timeline: Any, operation: Operation) -> int:
    return sum(each.is_completed and each.action == operation.commits_as for each in timeline)


def is_commit(instant: Any) -> bool:
    return bool(instant.is_completed and instant.action in WRITES)
