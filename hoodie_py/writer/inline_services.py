"""Table services right after a commit, where the options ask for them (Hudi ``runTableServicesInline``).

The commit has landed before they begin, so what goes wrong with them is a warning and no error of the write.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.options.write import AUTOMATIC_CLEAN, INLINE_COMPACT, INLINE_SCHEDULE, TABLE_SERVICES, TRIGGERS
from hoodie_py.reader.merger import Merger
from hoodie_py.writer import clean, compaction, compaction_plan
from hoodie_py.writer.clean import CleanResult
from hoodie_py.writer.compaction_merger import keep_if_own
from hoodie_py.writer.compaction_result import CompactionResult
from hoodie_py.writer.local_runner import Runner
from hoodie_py.writer.session import WriteSession


@dataclass(frozen=True, slots=True)
class ServiceResults:
    """What was done: request time of a planned compaction, results of a compaction and a clean."""

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
    """Plan and run a compaction when it is due, then clean, as far as the options ask for it.

    Args:
        session: of the write.
        merge_on_read: whether the table has logs to compact.
        runner: carries out the compaction's tasks.
        merger: that the write was given; a compaction takes it only where it is the table's own, as what readers see is
            merged by the table's rules.
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
