"""Finds the instants whose log blocks count in a metadata table (Hudi ``HoodieTableMetadataUtil``).

Writers update the metadata table before they commit to the table around it. So a commit of the metadata table alone
proves nothing. These instants count:

* completed instants of the table around it;
* completed delta commits of the metadata table itself that are not pending there: those that create partitions;
* commits that completed rollbacks and restores undid there, as the metadata table has entries that undo them. Commits
  before the metadata table's last compaction are in its base files already, so such rollbacks are not read;
* completed rollbacks and restores of the metadata table.

A metadata table in another place than ``.hoodie/metadata`` of a table is read by its own timeline, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_py.errors import FileMissingError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.own_instants import BEFORE_ALL
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline import instants
from hoodie_py.formats.timeline.instants import Instant, InstantSet
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.loader import TableTimeline, load_config

_PLACE = f"/{METADATA_FOLDER}/metadata"


def find_valid_instants(metadata: TableTimeline, around: TableTimeline | None = None) -> frozenset[str] | None:
    """Return the instants whose log blocks count; None if the metadata table is in no table.

    ``around``: the timeline of the table around it, as a snapshot has loaded it; None to load it here.

    Raises:
        TableNotFoundError: the table around the metadata table has no properties.
        CorruptFileError: a rollback's or restore's file is damaged.
        StorageError: the store refused.
    """
    if around is None:
        place = metadata.files.uri.rstrip("/")
        if not place.endswith(_PLACE):
            return None
        files = metadata.files.open_other(place.removesuffix(_PLACE))
        around = TableTimeline.load(files, load_config(files))
    files, config, timeline = around.files, around.config, around
    valid = {each.request_time for each in timeline.select_completed()}
    own = metadata.select_completed()
    valid |= {each.request_time for each in own.select_actions(instants.DELTA_COMMIT)} - timeline.pending_times
    last = own.select_actions(instants.COMMIT).last
    since = max(min(valid, default=BEFORE_ALL), "" if last is None else last.request_time)
    for undoing in timeline.select_completed().select_actions(instants.ROLLBACK, instants.RESTORE):
        if undoing.request_time > since:
            valid.update(_read_undone(files, config, undoing))
    valid |= {each.request_time for each in own.select_actions(instants.ROLLBACK, instants.RESTORE)}
    return InstantSet(valid)


def _read_undone(files: TableFiles, config: TableConfig, undoing: Instant) -> Iterator[str]:
    """Yield the commits that a completed rollback or restore undid; none if it was archived meanwhile."""
    from hoodie_py.formats.timeline.plans import RollbackMetadata, RollbackPlan
    from hoodie_py.formats.timeline.savepoints import RestoreMetadata

    path = instants.locate_instant(config, undoing)
    with locate_errors(path=path, instant=undoing.request_time):
        try:
            data = read_bounded(files, path)
            if undoing.action == instants.RESTORE:
                for rollback in RestoreMetadata.from_bytes(data).rollbacks:
                    yield from rollback.commits_rolled_back
            elif data:
                yield from RollbackMetadata.from_bytes(data).commits_rolled_back
            else:  # the plan has it, too
                plan = RollbackPlan.from_bytes(read_bounded(files, instants.locate_requested(config, undoing)))
                yield from () if plan.instant is None else (plan.instant.time,)
        except FileMissingError:
            return
