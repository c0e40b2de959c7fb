"""Choose the file slices that a scan reads: the slices of wanted partitions, without the ones that indexes exclude.

For a scan that shows the table at one instant, the indexes of the metadata table exclude slices (``skipping``). They
cannot for scans of ranges and of changes, whose rows are not the rows of merged slices.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.indexes.definitions import FILES_PARTITION
from hoodie_py.options.read import DATA_SKIPPING, MERGE_TYPE, METADATA_ENABLE, SKIP_MERGE
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.runtime.telemetry import count, tell_span
from hoodie_py.table.indexes.source import open_metadata_view

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.table.filter.predicate import Predicate
    from hoodie_py.table.indexes.index import FilterRequest, FilterStep
    from hoodie_py.table.indexes.view import MetadataView
    from hoodie_py.table.snapshot import Snapshot

LEAST_SLICES = 4  # for fewer slices no metadata table is opened for its indexes, unless the user asks for them
LEAST_LOCATED = 32  # for fewer slices files are listed before records are located, unless the user asks for it
_SMALL_LISTING = 256 << 10  # bytes of the metadata table's lists of files: a few hundred files


@dataclass(frozen=True, slots=True)
class SliceChoice:
    """The slices that a scan reads, how many there are in the wanted partitions, and what indexes excluded.

    ``note`` says why no index was used.
    """

    slices: list[FileSlice]
    partitions: int
    considered: int
    steps: tuple[FilterStep, ...] = ()
    note: str | None = None


def choose_slices(
    snapshot: Snapshot, query_type: str, predicate: Predicate | None, options: ReadOptions, merger: Merger | None
) -> SliceChoice:
    """Return the slices to read for a scan that shows a table at one instant.

    Raises:
        HoodieError: files cannot be listed; if the integrity is "strict": the metadata table is damaged or wrong.
    """
    note = _find_obstacle(snapshot, predicate, options.options)
    if note is not None or predicate is None:
        return _choose_all(snapshot.file_slices(query_type, predicate, options), note)
    asked = _ScanFilter(snapshot, query_type, predicate, options, merger)
    located = asked.locate()
    listed = asked.listed if located is None else located.listed
    if located is None and len(listed) < LEAST_SLICES and DATA_SKIPPING.read_given(options.options) is None:
        return _choose_all(listed, f"{len(listed)} file slices are too few for indexes to pay.")
    request = asked.request
    if request is None:
        return _choose_all(listed, "The metadata table cannot be read.")
    import logging  # imported here, since it would slow down the start of every command

    from hoodie_py.table.indexes.skipping import skip_slices

    left, steps = skip_slices(request, listed if located is None else located.left)
    steps = steps if located is None else [located.step, *steps]
    count("read.slices_skipped", len(listed) - len(left), snapshot.files)
    tell_span(slices_skipped=len(listed) - len(left))
    text = "Indexes left %d of %d file slices to read: %s"
    logging.getLogger(__name__).debug(text, len(left), len(listed), snapshot.files.uri)
    return SliceChoice(left, _count_partitions(listed), len(listed), tuple(steps))


def _choose_all(slices: list[FileSlice], note: str | None) -> SliceChoice:
    return SliceChoice(slices, _count_partitions(slices), len(slices), note=note)


def _count_partitions(slices: list[FileSlice]) -> int:
    return len({each.partition_path for each in slices})


@dataclass(frozen=True, slots=True)
class _Located:
    """The slices of all partitions with wanted records, the slices with such records, and the index's report."""

    listed: list[FileSlice]
    left: list[FileSlice]
    step: FilterStep


def _find_obstacle(snapshot: Snapshot, predicate: Predicate | None, options: Mapping[str, str]) -> str | None:
    """Say why indexes are not used; None if they are."""
    if predicate is None:
        return "There is no filter."
    if not METADATA_ENABLE.read(options):
        return f"The option {METADATA_ENABLE} is false."
    if not DATA_SKIPPING.read(options):
        return f"The option {DATA_SKIPPING} is false."
    if not snapshot.config.metadata_partitions:
        return "The table has no metadata table."
    return None


class _ScanFilter:
    """The filter of a scan, for the indexes of the metadata table, which is opened at first use."""

    def __init__(
        self,
        snapshot: Snapshot,
        query_type: str,
        predicate: Predicate,
        options: ReadOptions,
        merger: Merger | None,
    ) -> None:
        self._snapshot = snapshot
        self._query_type = query_type
        self._predicate = predicate
        self._options = options
        self._merger = merger

    @property
    def _strict(self) -> bool:
        return self._options.integrity == "strict"

    @property
    def _is_current(self) -> bool:
        """Whether the scan shows the newest rows, with all logs merged."""
        merged = self._query_type == "snapshot" or not self._snapshot.config.is_merge_on_read
        return merged and not self._snapshot.is_time_travel and MERGE_TYPE.read(self._options.options) != SKIP_MERGE

    @property
    def _merges_values(self) -> bool:
        return self._merger is None and self._snapshot.config.merge_mode is not MergeMode.CUSTOM

    @cached_property
    def request(self) -> FilterRequest | None:
        """The question to the indexes; None, with a warning, if the metadata table cannot be opened.

        Raises:
            HoodieError: the metadata table is damaged, and the integrity is "strict".
        """
        from hoodie_py.table.indexes.index import FilterRequest

        snapshot, options = self._snapshot, self._options.options
        try:
            view = open_metadata_view(snapshot, options)
            usable = view is not None and not view.unlisted  # reads commits, which another process may drop meanwhile
        except HoodieError as error:
            if self._strict:
                raise
            _warn(f"The metadata table cannot be read, so its indexes leave out no file slice: {error}")
            return None
        if view is None or not usable:  # it may be out of date; listing files warns of that
            return None
        return FilterRequest(
            view,
            snapshot.files,
            snapshot.config,
            snapshot.timeline,
            snapshot.schema,
            self._predicate,
            is_current=self._is_current,
            merges_values=self._merges_values,
            strict=self._strict,
            options=options,
        )

    def locate(self) -> _Located | None:
        """Find the slices of wanted records by an index of records; None if no index knows them, or it does not pay.

        Only the partitions of these slices are listed. If the integrity is "strict", the index is read, but nothing is
        excluded by it: no file could confirm that it lacks a key.

        Raises:
            HoodieError: as for ``choose_slices``.
        """
        from hoodie_py.table.indexes.index import FilterStep
        from hoodie_py.table.indexes.keys import locate_groups, may_locate

        config, schema = self._snapshot.config, self._snapshot.schema.arrow
        if not (self._is_current and self._merges_values and may_locate(config, schema, self._predicate)):
            return None
        request = self.request
        if request is None:
            return None
        view = request.view
        try:
            if DATA_SKIPPING.read_given(request.options) is None and self._has_few_slices(view):
                return None
            calls, size = view.calls, view.bytes
            found = locate_groups(request)
            if found is None:
                return None
            listed = self._snapshot.choose_view(self._options).list_slices(None, found.partitions)
            left = found.select(listed)
        except HoodieError as error:
            if self._strict:
                raise
            _warn(f"The metadata table's indexes of records cannot be used, so all file slices are looked at: {error}")
            return None
        if self._strict:
            return None
        step = FilterStep(found.index, len(listed), len(listed) - len(left), view.calls - calls, view.bytes - size)
        return _Located(listed, left, step)

    def _has_few_slices(self, view: MetadataView) -> bool:
        """Say whether the scan has so few slices that reading them is as fast as an index; lists few files."""
        groups = view.list_groups(FILES_PARTITION)
        sizes = [0 if each.base_file is None else each.base_file.size for each in groups]
        sizes += [log.size for each in groups for log in each.log_files]
        return sum(sizes) < _SMALL_LISTING and len(self.listed) < LEAST_LOCATED

    @cached_property
    def listed(self) -> list[FileSlice]:
        """The slices of all partitions that the filter does not exclude."""
        return self._snapshot.file_slices(self._query_type, self._predicate, self._options)


def _warn(text: str) -> None:
    warnings.warn(HoodieWarning(text), stacklevel=2)
