"""Archive the metadata table's own timeline (Hudi ``HoodieBackedTableMetadataWriter.performTableServices``,
``HoodieMetadataWriteUtils``).

It keeps one commit more than the table around it, and every commit that is active there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.options.write import KEEP_LATEST_FILE_VERSIONS, METADATA_COMPACT_COMMITS, TRIGGERS
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.listing import list_timeline
from hoodie_py.table.timeline.loader import load_config
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.archival.active_files import ActiveTimeline
from hoodie_py.writer.archival.archive import archive_instants
from hoodie_py.writer.archival.choice import Choice, choose_metadata_instants
from hoodie_py.writer.metadata_table.undo import METADATA_TABLE
from hoodie_py.writer.settings import ArchivalSettings
from hoodie_py.writer.timeline.session import WriteSession


def choose_archived(session: WriteSession, metadata: Timeline, data: Timeline) -> Choice:
    """Return which instants of the metadata table may be archived; this costs no request."""
    return choose_metadata_instants(metadata, data, _make_settings(session))


def archive_metadata_timeline(session: WriteSession, now: Snapshot, ensure_held: Callable[[], None]) -> None:
    """Archive what is due. The caller holds the lock of the table around the metadata table.

    Raises:
        CorruptFileError: a file of the timeline or of the archive is damaged.
        ConflictError: the lock is lost, or another writer archives.
        CommitStateUnknownError: the store did not say whether it wrote a file.
        StorageError: the store refused.
    """
    files = session.files.sub(METADATA_TABLE)
    config = load_config(files)  # the folder of its archive may have another name than the table's
    listing = list_timeline(files, config)
    settings = _make_settings(session)
    choice = choose_metadata_instants(listing.timeline, now.timeline.timeline, settings)
    zone = parse_zone(session.timezone, now.config.timezone)
    archive_instants(ActiveTimeline(files, config, listing.names, zone), choice.instants, settings, ensure_held)


def _make_settings(session: WriteSession) -> ArchivalSettings:
    settings = session.settings.archival
    return replace(
        settings,
        min_commits=settings.min_commits + 1,
        max_commits=settings.max_commits + 1,
        clean_policy=KEEP_LATEST_FILE_VERSIONS,
        trigger=TRIGGERS[0],
        delta_commits=METADATA_COMPACT_COMMITS.read(session.settings.options),
    )
