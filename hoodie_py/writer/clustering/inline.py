"""Clustering after a write, as the options ask (Hudi ``BaseHoodieTableServiceClient.inlineClustering``)."""

from __future__ import annotations

from hoodie_py.options.clustering import INLINE_CLUSTERING, SCHEDULE_INLINE
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.writer.clustering.cluster import list_pending, run
from hoodie_py.writer.clustering.plan import schedule
from hoodie_py.writer.clustering.report import ClusteringResult
from hoodie_py.writer.precombine.merge_options import keep_if_own
from hoodie_py.writer.services.runner import Runner
from hoodie_py.writer.timeline.session import WriteSession


def run_inline(session: WriteSession, merger: Merger | None, runner: Runner | None) -> ClusteringResult | None:
    """Run pending clusterings, then plan and run one if enough commits came since the last, and return its result.

    None if the options do not ask for it, or nothing is due. With the option that only plans, a plan is made and left.

    Raises:
        HoodieError: see ``plan.schedule`` and ``cluster.run``.
    """
    options = session.settings.options
    if INLINE_CLUSTERING.read(options):
        own = keep_if_own(session.look().config, merger)
        for pending in list_pending(session.look()):
            run(session, pending.request_time, runner=runner, merger=own)
        planned = schedule(session, only_if_due=True)
        return None if planned is None else run(session, planned, runner=runner, merger=own)
    if SCHEDULE_INLINE.read(options) and not list_pending(session.look()):
        schedule(session, only_if_due=True)
    return None
