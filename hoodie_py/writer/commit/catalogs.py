"""Report a commit to catalogs, where options of the write ask for it (Hudi ``HoodieSparkSqlWriter.metaSync``)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import closing

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.metastore.report import SyncResult
from hoodie_py.options.sync import find_kinds
from hoodie_py.writer.timeline.session import WriteSession


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
    """Report the commit to the catalogs. It has landed, so a failure is a warning and not an error of the write."""
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
