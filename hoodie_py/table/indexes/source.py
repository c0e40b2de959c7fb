"""Opens the metadata table of a snapshot on first use.

The modules that read it are imported only then, as most reads of tables without one never need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from hoodie_py.errors import HoodieError
from hoodie_py.options.read import METADATA_ENABLE
from hoodie_py.table.timeline.loader import TableTimeline

if TYPE_CHECKING:
    from hoodie_py.table.indexes.view import MetadataView


class MetadataSource:
    """Opens the metadata table of one loaded timeline on first use; threads may share it."""

    def __init__(self, timeline: TableTimeline) -> None:
        self._around = timeline
        self._view: MetadataView | None = None
        self._problem: HoodieError | None = None
        self._lock = Lock()

    @property
    def opened(self) -> MetadataView | None:
        """The view, if it was opened; else None."""
        return self._view

    def open(self) -> MetadataView | None:
        """Return the view; None if the table has no metadata table.

        Raises:
            HoodieError: as for ``MetadataView``.
        """
        config = self._around.config
        if not config.metadata_partitions or config.is_metadata_table:
            return None
        from hoodie_py.table.indexes.view import MetadataView

        with self._lock:
            if self._problem is not None:
                raise self._problem
            if self._view is None:
                try:
                    self._view = MetadataView(self._around)
                except HoodieError as error:
                    self._problem = error
                    raise
            return self._view


class HasMetadata(Protocol):
    """A snapshot, which opens its metadata table once."""

    @property
    def metadata(self) -> MetadataSource:
        """The source that opens its metadata table."""
        ...


def open_metadata_view(snapshot: HasMetadata, options: Mapping[str, str] | None = None) -> MetadataView | None:
    """Return a snapshot's view of its metadata table, which is opened once.

    None if the table has none, or if ``hoodie.metadata.enable`` is false.

    Raises:
        HoodieError: as for ``MetadataView``.
    """
    if not METADATA_ENABLE.read(options or {}):
        return None
    return snapshot.metadata.open()
