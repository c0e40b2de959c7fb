"""Choose the file slices that a scan reads: those of wanted partitions, without those that indexes leave out.

A scan that shows the table at one instant has slices left out by the indexes of the metadata table (``skipping``).
Scans of ranges and of changes have not: their rows are not those of merged slices.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.options.read import DATA_SKIPPING, METADATA_ENABLE
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.metadata_table.source import open_metadata_view

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.table.filter.predicate import Predicate
    from hoodie_py.table.metadata_table.slice_filter import FilterRequest, FilterStep
    from hoodie_py.table.snapshot import Snapshot

LEAST_SLICES = 4  # from which on a metadata table is opened for its indexes, unless the user asks for them


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
    slices = snapshot.file_slices(query_type, predicate, options)
    partitions = len({each.partition_path for each in slices})
    note = _find_obstacle(snapshot, predicate, options.options, len(slices))
    if note is not None or predicate is None:
        return SliceChoice(slices, partitions, len(slices), note=note)
    asked = _make_filter_request(snapshot, predicate, options, merger)
    if asked is None:
        return SliceChoice(slices, partitions, len(slices), note="The metadata table cannot be read.")
    from hoodie_py.table.metadata_table.skipping import skip_slices

    left, steps = skip_slices(asked, slices)
    return SliceChoice(left, partitions, len(slices), tuple(steps))


def _find_obstacle(
    snapshot: Snapshot, predicate: Predicate | None, options: Mapping[str, str], slices: int
) -> str | None:
    """Say why no index is asked; None where indexes are asked."""
    if predicate is None:
        return "There is no filter."
    if not METADATA_ENABLE.read(options):
        return f"The option {METADATA_ENABLE} is false."
    if not DATA_SKIPPING.read(options):
        return f"The option {DATA_SKIPPING} is false."
    if not snapshot.config.metadata_partitions:
        return "The table has no metadata table."
    if slices < LEAST_SLICES and DATA_SKIPPING.read_given(options) is None:
        return f"{slices} file slices are too few for indexes to pay."
    return None


def _make_filter_request(
    snapshot: Snapshot, predicate: Predicate, options: ReadOptions, merger: Merger | None
) -> FilterRequest | None:
    """Open the metadata table; None where that fails, with a warning."""
    from hoodie_py.table.metadata_table.slice_filter import FilterRequest

    strict = options.integrity == "strict"
    try:
        view = open_metadata_view(snapshot, options.options)
    except HoodieError as error:
        if strict:
            raise
        text = f"The metadata table cannot be read, so its indexes leave out no file slice: {error}"
        warnings.warn(HoodieWarning(text), stacklevel=2)
        return None
    if view is None or view.unlisted:  # what it says may be out of date; listing files has warned of it
        return None
    return FilterRequest(
        view,
        snapshot.files,
        snapshot.config,
        snapshot.timeline,
        snapshot.schema,
        predicate,
        is_current=not snapshot.is_time_travel,
        merges_values=merger is None and snapshot.config.merge_mode is not MergeMode.CUSTOM,
        strict=strict,
        options=options.options,
    )
