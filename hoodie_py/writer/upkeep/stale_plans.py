"""Carry out a pending compaction, even if changes since its plan forbid it (``indexes.returning_keys``).

The plan is rolled back, so that the next compaction plans anew. Up to table version 6 it must stay, as later log files
are named after it. The compaction would bring keys back there that other file groups have by now. So these keys are
deleted first in the file groups that are compacted. Reads do not change: so far a delete that the compaction drops has
hidden the keys.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from hoodie_py.arrow.arrays import repeat_value
from hoodie_py.errors import ConflictError
from hoodie_py.options.write import TABLE_SERVICES
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.index.delete_filter import make_deletes
from hoodie_py.writer.indexes.returning_keys import StalePlanError
from hoodie_py.writer.indexes.slice_rows import SliceRows
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.pipeline.write import Write
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.rollback.rollback import RollbackResult, rollback
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.compaction_report import CompactionResult
from hoodie_py.writer.services.service_run import Runner
from hoodie_py.writer.timeline.session import WriteSession

_log = logging.getLogger(__name__)


def run_or_take_back(
    session: WriteSession, instant: str, *, runner: Runner | None = None, merger: Merger | None = None
) -> CompactionResult | RollbackResult:
    """Run a pending compaction. If its plan is too old, roll it back, or delete the keys in its way and run it.

    Raises:
        StalePlanError: the plan is too old, must stay, and deletes do not help.
        HoodieError: as for a compaction, a rollback and a write.
    """
    try:
        return Compaction().run(session, instant, runner=runner, merger=merger)
    except StalePlanError as error:
        snapshot = session.look()
        if not snapshot.view.visibility.logs_carry_base_instant:
            _log.info("The plan is rolled back: %s", error)
            return rollback(session, instant)
        if not error.returning:
            raise
        _log.info("Keys are deleted where they would come back: %s", error)
        _check_hidden(session, snapshot, error.returning, merger)
        _delete_keys(session, snapshot, error.returning, merger)
    return Compaction().run(session, instant, runner=runner, merger=merger)


def _check_hidden(
    session: WriteSession, snapshot: Snapshot, keys: Mapping[GroupKey, pa.Array], merger: Merger | None
) -> None:
    """Check that no read sees the keys in their file groups: another writer may have written them since the comparison.

    Writers that come later are detected at the commit, as by any write.
    """
    rows = SliceRows(snapshot, session.settings.options, merger=merger)
    for each in snapshot.view.list_slices(None, sorted({path for path, _ in keys})):
        group = each.partition_path, each.file_id
        if group in keys and rows.read_table(each, keys[group]).num_rows:
            raise ConflictError(
                "A key was written meanwhile in the file group where it was to be deleted.",
                hint="Try again.",
                file_group=each.file_id,
                partition=each.partition_path or None,
            )


def _delete_keys(
    session: WriteSession, snapshot: Snapshot, keys: Mapping[GroupKey, pa.Array], merger: Merger | None
) -> None:
    """Commit deletes of keys in file groups."""
    paths = [repeat_value(path, pa.string(), len(each)) for (path, _), each in keys.items()]
    file_ids = [repeat_value(file_id, pa.string(), len(each)) for (_, file_id), each in keys.items()]
    deletes = make_deletes(*(pa.chunked_array(each, pa.string()) for each in (list(keys.values()), paths, file_ids)))
    settings = session.settings
    alone = replace(session, settings=replace(settings, options={**settings.options, str(TABLE_SERVICES): "false"}))
    write = Write(alone, snapshot, WriteOperation.DELETE, merger)
    write.commit_tagged(deletes, load_output_schema(snapshot), looked_up=False)
