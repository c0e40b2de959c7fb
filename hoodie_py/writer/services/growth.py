"""What grows and is due to be made small: log files, small files, old file slices, the timeline.

Each is judged by the rule that plans it after a write, by Hudi's keys and defaults. Two judgements differ from
inline services, which their options switch on: a clustering needs two small file groups to put together, or a bucket to
split or merge, unless it sorts or the options say otherwise; a log compaction is due only while no compaction is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hoodie_py.options.clustering import ASYNC_MAX_COMMITS, INLINE_MAX_COMMITS, SCHEDULE_INLINE, SINGLE_GROUPS
from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD
from hoodie_py.options.write import METADATA_MODE, TRIGGERS
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.archival.choice import choose_instants
from hoodie_py.writer.clean import plan as clean_plan
from hoodie_py.writer.clean.plan import CleanSettings
from hoodie_py.writer.clustering import plan as clustering_plan
from hoodie_py.writer.compaction import plan as compaction_plan
from hoodie_py.writer.compaction.trigger import Trigger, judge_trigger
from hoodie_py.writer.log_compaction import plan as log_compaction_plan
from hoodie_py.writer.log_compaction.plan import check_foldable
from hoodie_py.writer.metadata_services.services import list_due
from hoodie_py.writer.refusals import check_compactable
from hoodie_py.writer.services.report import DueService
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time

METADATA, COMPACTION, LOG_COMPACTION = "metadata table", "compaction", "log compaction"
CLUSTERING, CLEAN, ARCHIVAL = "clustering", "clean", "archival"


def with_trigger(session: WriteSession) -> WriteSession:
    """Return the session with the trigger that inline compactions have."""
    plan = session.settings.plan
    return replace(session, settings=replace(session.settings, plan=replace(plan, trigger=plan.trigger or TRIGGERS[0])))


def with_pairs(session: WriteSession) -> WriteSession:
    """Return the session with options that cluster no file group alone, unless they ask for it."""
    if SINGLE_GROUPS.find_text(session.settings.options) is not None:
        return session
    options = {**session.settings.options, str(SINGLE_GROUPS): "false"}
    return replace(session, settings=replace(session.settings, options=options))


def judge_metadata(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge the services of the metadata table itself."""
    if not snapshot.config.metadata_partitions:
        return DueService(METADATA, "not due", "the table has none")
    if session.settings.metadata_mode != "auto":
        return DueService(METADATA, "not due", f"{METADATA_MODE} is {session.settings.metadata_mode}")
    due = list_due(session, snapshot)
    return DueService(METADATA, "due" if due else "not due", "; ".join(due) or "nothing of it is old enough")


def judge_compaction(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge by Hudi's trigger, and by what a plan would take."""
    if not snapshot.config.is_merge_on_read:
        return DueService(COMPACTION, "not due", "a copy-on-write table has no log files")
    check_compactable(snapshot)
    instant = session.clock.peek(find_newest_time(snapshot.timeline.timeline))
    settings = with_trigger(session).settings.plan
    trigger = judge_trigger(snapshot.timeline.timeline, instant, settings)
    if trigger is None:
        return DueService(COMPACTION, "not due", "nothing was written yet")
    figures: dict[str, int | float | str] = {"delta commits": trigger.commits, "seconds": trigger.seconds}
    figures |= _measure_logs(snapshot)
    planned = compaction_plan.make_plan(snapshot, instant, settings) if trigger.is_due else None
    taken = 0 if planned is None else len(planned.plan.operations)
    if trigger.is_due and not taken:
        return DueService(COMPACTION, "not due", f"{trigger}, but no file group can be planned", figures)
    return DueService(COMPACTION, "due" if taken else "not due", _describe(trigger, figures), figures)


def _measure_logs(snapshot: Snapshot) -> dict[str, int | float | str]:
    slices = snapshot.view.list_slices()
    base = sum(each.base_file.size for each in slices if each.base_file is not None)
    logs = [log.size for each in slices for log in each.log_files]
    ratio = {"log to base": round(sum(logs) / base, 3)} if base else {}
    return {"log files": len(logs), "log bytes": sum(logs), "base bytes": base, **ratio}


def _describe(trigger: Trigger, figures: Mapping[str, int | float | str]) -> str:
    ratio = f", {figures['log to base']:.0%} of the base files" if "log to base" in figures else ""
    return f"{trigger}; {figures['log files']:,} log files of {figures['log bytes']:,} bytes{ratio}"


def judge_log_compaction(session: WriteSession, snapshot: Snapshot, compaction: DueService | None) -> DueService:
    """Judge by what a plan would take, which reads the headers of blocks; without that if a compaction is due."""
    if not snapshot.config.is_merge_on_read:
        return DueService(LOG_COMPACTION, "not due", "a copy-on-write table has no log files")
    check_foldable(session, snapshot)
    if compaction is not None and compaction.is_due:
        return DueService(LOG_COMPACTION, "not due", "the compaction takes all log files")
    least = BLOCKS_THRESHOLD.read(session.settings.options)
    instant = session.clock.peek(find_newest_time(snapshot.timeline.timeline))
    taken = log_compaction_plan.make_plan(session, snapshot, instant).operations
    files = sum(len(each.delta_files) for each in taken)
    figures = {"file slices": len(taken), "log files": files, "threshold": least}
    if not taken:
        return DueService(LOG_COMPACTION, "not due", f"no log has blocks of {least} commits", figures)
    why = f"{len(taken):,} file slices have log blocks of {least} or more commits, in {files:,} log files"
    return DueService(LOG_COMPACTION, "due", why, figures)


def judge_clustering(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge by the commits since the last clustering, and by what a plan would take."""
    chosen = with_pairs(session)
    settings = clustering_plan.resolve_settings(chosen, snapshot)
    options = chosen.settings.options
    key = ASYNC_MAX_COMMITS if SCHEDULE_INLINE.read(options) else INLINE_MAX_COMMITS
    least = key.read(options)
    commits, last = clustering_plan.count_commits(snapshot)
    since = f"{commits} of {least} commits " + (f"since the clustering at {last}" if last else "and no clustering yet")
    figures: dict[str, int | float | str] = {"commits": commits}
    if commits < least:
        return DueService(CLUSTERING, "not due", since, figures)
    instant = session.clock.peek(find_newest_time(snapshot.timeline.timeline))
    report = clustering_plan.make_plan(chosen, snapshot, instant, settings).report
    small = sum(len(each.file_ids) for each in report.groups)
    new = sum(each.new_files for each in report.groups)
    size = sum(each.base_bytes for each in report.groups)
    figures |= {"small files": small, "bytes": size, "new files": new}
    if not small:
        why = "no small file groups to put together" if settings.resize is None else report.not_due
        return DueService(CLUSTERING, "not due", f"{since}; {why}", figures)
    why = f"{since}; {small:,} file groups of {size:,} bytes would become {new:,}"
    return DueService(CLUSTERING, "due", why, figures)


def judge_clean(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge by what a plan would remove."""
    settings = CleanSettings.of(session.settings.options)
    report = clean_plan.make_plan(snapshot, settings).report
    if report.waits is not None:
        return DueService(CLEAN, "not due", report.waits)
    files = sum(len(each.files) for each in report.removed)
    size = sum(each.size for each in report.removed)
    kept = f"{settings.commits} commits" if report.policy == "KEEP_LATEST_COMMITS" else f"{settings.versions} versions"
    commits = len(snapshot.timeline.timeline.select_writes())
    figures = {"files": files, "bytes": size, "commits": commits}
    if not files:
        return DueService(CLEAN, "not due", f"no file is older than the {kept} retained, of {commits}", figures)
    why = f"{files:,} files of {size:,} bytes are older than the {kept} that are retained"
    return DueService(CLEAN, "due", why, figures)


def judge_archival(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge by the number of active commits, and by what keeps them."""
    settings = session.settings.archival
    choice = choose_instants(snapshot, settings)
    figures = {"commits": choice.active, "most": settings.max_commits, "instants": len(choice.instants)}
    active = f"{choice.active} commits are active"
    if not choice.instants:
        return DueService(ARCHIVAL, "not due", f"{active}; {choice.why}", figures)
    why = f"{active}, over the limit of {settings.max_commits}; {len(choice.instants)} instants can go"
    return DueService(ARCHIVAL, "due", why, figures)
