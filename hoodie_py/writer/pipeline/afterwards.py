"""What comes after a commit: the table services that are due, and the report to catalogs.

The commit has landed by then, so a failure is a warning and no error of the write_keys. Few writes run a service: each
is imported where it is due.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TypeVar

from hoodie_py.errors import ConflictError, HoodieError, HoodieWarning
from hoodie_py.metastore.report import SyncResult
from hoodie_py.options import write as write_keys
from hoodie_py.options.clustering import INLINE_CLUSTERING, SCHEDULE_INLINE
from hoodie_py.options.log_compaction import INLINE_LOG_COMPACTION
from hoodie_py.options.sync import find_kinds
from hoodie_py.writer.archival.archive import archive_inline
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.pipeline.engine import Target
from hoodie_py.writer.precombine.merge_options import keep_if_own
from hoodie_py.writer.services.clean import clean_inline
from hoodie_py.writer.services.service_run import Runner
from hoodie_py.writer.timeline.session import WriteSession

T = TypeVar("T")
_log = logging.getLogger(__name__)


def check_catalogs(session: WriteSession) -> Sequence[str]:
    """Return the kinds of catalogs to report to.

    Call it before the write, so that a missing package makes the write fail, not the sync after it.

    Raises:
        InvalidQueryError: a package is missing.
    """
    kinds = find_kinds(session.settings.options)
    if kinds:
        from hoodie_py.metastore.connect import check_package

        for kind in kinds:
            check_package(kind)
    return kinds


def sync_catalogs(session: WriteSession, kinds: Sequence[str]) -> tuple[SyncResult, ...]:
    """Report the commit to the catalogs (Hudi ``HoodieSparkSqlWriter.metaSync``)."""
    found = []
    for kind in kinds:
        from hoodie_py.metastore.connect import connect_for_write
        from hoodie_py.metastore.sync import sync_table

        options = session.settings.options
        try:
            with closing(connect_for_write(kind, options)) as metastore:
                found.append(sync_table(session.look(), metastore, given=options))
        except HoodieError as error:
            text = f"The write is committed; the sync with the catalog failed, so call sync(): {error}"
            warnings.warn(HoodieWarning(text), stacklevel=2)
    return tuple(found)


def run_inline_services(target: Target, done: WriteResult, runner: Runner) -> WriteResult:
    """Plan and run a compaction and a clustering if they are due, then clean and archive, as the options ask (Hudi
    ``runTableServicesInline``, ``mayBeCleanAndArchive``).
    """
    session = target.session
    options = session.settings.options
    inline, schedule = write_keys.INLINE_COMPACT.read(options), write_keys.INLINE_SCHEDULE.read(options)
    if not write_keys.TABLE_SERVICES.read(options):
        return done
    try:
        if target.snapshot.config.is_merge_on_read and (inline or schedule):
            from hoodie_py.writer.services.compaction import Compaction

            service = Compaction()
            done = replace(done, scheduled=service.schedule(service.with_upkeep_options(session)))
            if done.scheduled is not None and inline:
                # Only a merger that is the table's own: readers merge by the table's rules.
                own = keep_if_own(session.look().config, target.merger)
                result = service.run(session, done.scheduled, runner=runner, merger=own)
                done = replace(done, compaction=result)
        if target.snapshot.config.is_merge_on_read and INLINE_LOG_COMPACTION.read(options):
            from hoodie_py.writer.services.log_compaction import LogCompaction

            folding = LogCompaction()
            folding.run(session, folding.schedule(session), runner=runner)
        if INLINE_CLUSTERING.read(options) or SCHEDULE_INLINE.read(options):
            from hoodie_py.writer.clustering.cluster import Clustering

            done = replace(done, clustering=Clustering().run_inline(session, target.merger, runner))
        if write_keys.AUTOMATIC_CLEAN.read(options) and done.instant is not None:
            done = replace(done, clean=_run_unless_busy(partial(clean_inline, instant=done.instant), session))
        if write_keys.AUTOMATIC_ARCHIVE.read(options):
            done = replace(done, archive=_run_unless_busy(archive_inline, session))
    except HoodieError as error:
        warnings.warn(HoodieWarning(f"The write is committed; a table service after it failed: {error}"), stacklevel=3)
    return done


def _run_unless_busy(service: Callable[[WriteSession], T | None], session: WriteSession) -> T | None:
    """Run a service that any later write may run, too. Another writer in its way is no failure."""
    try:
        return service(session)
    except ConflictError as error:
        _log.info("Left to a later write: %s [table=%s]", error, session.files.uri)
        return None
