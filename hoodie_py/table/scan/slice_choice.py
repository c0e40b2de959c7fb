"""Choose the file slices that a scan reads: those of wanted partitions, without those that indexes leave out.

A scan that shows the table at one instant has slices left out by the indexes of the metadata table (``skipping``).
Scans of ranges and of changes have not: their rows are not those of merged slices.
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

LEAST_SLICES = 4  # from which on a metadata table is opened for its indexes, unless the user asks for them
LEAST_LOCATED = 32  # from which on records are located before files are listed, unless the user asks for it
_SMALL_LISTING = 256 << 10  # bytes of lists of files, in which those of a few hundred files are


@dataclass(frozen=True, slots=True)
class SliceChoice:
    """The slices that a scan reads, how many there are in the partitions with wanted values, and what indexes did.

    ``note`` says why no index was asked.
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
        HoodieError: files cannot be listed; with the integrity "strict": the metadata table is damaged, or lies.
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
    import logging  # only here: every start of a command would wait for it

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
    """The slices of partitions that have wanted records, those of them that have some, and what the index did."""

    listed: list[FileSlice]
    left: list[FileSlice]
    step: FilterStep


def _find_obstacle(snapshot: Snapshot, predicate: Predicate | None, options: Mapping[str, str]) -> str | None:
    """Say why no index is asked; None where indexes are asked."""
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
    """The filter of a scan, for the indexes of the metadata table, which is opened when first asked."""

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
        """What indexes are asked; None where the metadata table cannot be opened, with a warning.

        Raises:
            HoodieError: with the integrity "strict": the metadata table is damaged.
        """
        from hoodie_py.table.indexes.index import FilterRequest

        snapshot, options = self._snapshot, self._options.options
        try:
            view = open_metadata_view(snapshot, options)
        except HoodieError as error:
            if self._strict:
                raise
            _warn(f"The metadata table cannot be read, so its indexes leave out no file slice: {error}")
            return None
        if view is None or view.unlisted:  # what it says may be out of date; listing files warns of it
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
        """Look up the slices of wanted records in an index of records; None where none can tell, or it does not pay.

        Only the partitions of these slices are listed. With the integrity "strict" the index is asked, and its answer
        leaves out nothing: no file can vouch for a key that it does not have.

        Raises:
            HoodieError: as ``choose_slices``.
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
        """Say whether the scan has so few slices that their files tell as soon where keys are; lists few at most."""
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
