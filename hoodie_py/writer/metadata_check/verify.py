"""Verify a table: its files, block by block, and each entry of its metadata table (Hudi
``HoodieMetadataTableValidator``).

Nothing is written and no lock is taken: the table is checked as of the snapshot. A writer at work meanwhile can make
the metadata table newer than that; then a finding may be its doing, so check again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import closing

from hoodie_py.errors import HoodieError, HoodieWarning, UnsupportedFeatureError
from hoodie_py.options.read import METADATA_ENABLE
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.metadata_table.source import open_metadata_view
from hoodie_py.table.scan.scan import make_scan
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.metadata_build.sources import IndexSource
from hoodie_py.writer.metadata_check.partition_checks import OnEntries, check_partition
from hoodie_py.writer.metadata_check.report import PartReport, VerifyReport

DATA = "data"


def verify_table(
    snapshot: Snapshot,
    *,
    metadata: bool = True,
    data: bool = True,
    options: Mapping[str, str] | None = None,
    on_progress: OnEntries | None = None,
) -> VerifyReport:
    """Check a table and report; what cannot be read is a finding.

    Raises:
        StorageError: the store refused.
    """
    began = time.monotonic()
    texts = options or {}
    parts: list[PartReport] = []
    if data:
        parts.append(_check_data(snapshot, texts, on_progress))
    if metadata and snapshot.config.metadata_partitions:
        parts += _check_metadata(snapshot, texts, on_progress)
    return VerifyReport(snapshot.config.name, snapshot.instant, tuple(parts), time.monotonic() - began)


def _check_data(snapshot: Snapshot, options: Mapping[str, str], on_progress: OnEntries | None) -> PartReport:
    """Read every newest slice whole, with sizes and counts as the commits say."""
    report = PartReport(DATA)
    if snapshot.instant is None:
        return report
    try:
        scan = make_scan(snapshot, integrity="strict", options={**options, METADATA_ENABLE: "false"})
        tasks = [each for each in scan.tasks() if isinstance(each, ScanTask)]
    except HoodieError as error:
        report.note("unreadable", snapshot.config.name, str(error))
        return report
    for number, task in enumerate(tasks, 1):
        place = task.file_slice
        try:
            with closing(task.to_batches()) as batches:
                for _ in batches:
                    pass
        except HoodieError as error:
            report.note("unreadable", f"{place.partition_path}/{place.file_id}", str(error))
        report.checked += 1
        if on_progress is not None:
            on_progress(DATA, number)
    return report


def _check_metadata(snapshot: Snapshot, options: Mapping[str, str], on_progress: OnEntries | None) -> list[PartReport]:
    parts: list[PartReport] = []
    try:
        view = open_metadata_view(snapshot)
        definitions = read_definitions(snapshot.files, snapshot.config)
    except HoodieError as error:
        broken = PartReport("metadata table")
        broken.note("unreadable", snapshot.config.name, str(error))
        return [broken]
    if view is None:
        return []
    for name in sorted(snapshot.config.metadata_partitions):
        source = IndexSource(snapshot, definitions.get(name), options)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HoodieWarning)  # what a read skips, the check of the data tells
                parts.append(check_partition(source, name, view, on_progress))
        except UnsupportedFeatureError as error:
            parts.append(PartReport(name, unchecked=error.message))
        except HoodieError as error:
            broken = PartReport(name)
            broken.note("unreadable", name, str(error))
            parts.append(broken)
    return parts
