"""Run table services right after a commit, if the options ask for them (Hudi ``runTableServicesInline``).

The commit has landed before they begin, so a failure of a service is a warning and no error of the write.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.options.write import AUTOMATIC_CLEAN, INLINE_COMPACT, INLINE_SCHEDULE, TABLE_SERVICES, TRIGGERS
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.writer.clean import clean
from hoodie_py.writer.clean.clean import CleanResult
from hoodie_py.writer.compaction import compact as compaction
from hoodie_py.writer.compaction import plan as compaction_plan
from hoodie_py.writer.compaction.local_runner import Runner
from hoodie_py.writer.compaction.merger import keep_if_own
from hoodie_py.writer.compaction.report import CompactionResult
from hoodie_py.writer.timeline.session import WriteSession


@dataclass(frozen=True, slots=True)
class ServiceResults:
    """Request time of a planned compaction, results of a compaction and of a clean; None where nothing was done."""

    scheduled: str | None = None
    compaction: CompactionResult | None = None
    clean: CleanResult | None = None


def run_inline_services(
    session: WriteSession,
    *,
    merge_on_read: bool,
    runner: Runner | None = None,
    merger: Merger | None = None,
) -> ServiceResults:
    """Plan and run a compaction if it is due, then clean, as the options ask. The compaction uses the write's merger
    only if it is the table's own, as readers merge by the table's rules.
    """
    options = session.settings.options
    inline, schedule = INLINE_COMPACT.read(options), INLINE_SCHEDULE.read(options)
    done = ServiceResults()
    if not TABLE_SERVICES.read(options):
        return done
    try:
        if merge_on_read and (inline or schedule):
            plan = session.settings.plan
            due = replace(session.settings, plan=replace(plan, trigger=plan.trigger or TRIGGERS[0]))
            done = replace(done, scheduled=compaction_plan.schedule(replace(session, settings=due)))
        if done.scheduled is not None and inline:
            own = keep_if_own(session.look().config, merger)
            result = compaction.run(session, done.scheduled, runner=runner, merger=own)
            done = replace(done, compaction=result)
        if AUTOMATIC_CLEAN.read(options):
            done = replace(done, clean=clean.clean(session, None))
    except HoodieError as error:
        warnings.warn(HoodieWarning(f"The write is committed; a table service after it failed: {error}"), stacklevel=3)
    return done
