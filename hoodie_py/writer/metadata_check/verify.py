"""Verify a table: its files, block by block, and each entry of its metadata table (Hudi
``HoodieMetadataTableValidator``).

Nothing is written and no lock is taken: the table is checked as of the snapshot. A writer at work meanwhile makes the
metadata table newer than that, and removes files. So where something is found and the table has changed, the check is
done again with the table as it is then.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike

from hoodie_py.errors import FileMissingError, HoodieError, HoodieWarning, StorageError, UnsupportedFeatureError
from hoodie_py.formats.metadata_table.index_definitions import FILES, IndexDefinition
from hoodie_py.options.read import METADATA_ENABLE
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.metadata_table.source import open_metadata_view
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.table.scan.scan import make_scan
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.metadata_build.sources import IndexSource
from hoodie_py.writer.metadata_check.leftovers import find_leftovers
from hoodie_py.writer.metadata_check.partition_checks import check_partition
from hoodie_py.writer.metadata_check.report import OnEntries, PartReport, VerifyReport
from hoodie_py.writer.metadata_check.resume import VerifyProgress, describe_check

DATA = "data"
_MOST_TIMES = 3


def verify_table(
    snapshot: Snapshot,
    *,
    metadata: bool = True,
    data: bool = True,
    options: Mapping[str, str] | None = None,
    on_progress: OnEntries | None = None,
    resume: str | PathLike[str] | None = None,
    merger: Merger | None = None,
) -> VerifyReport:
    """Check a table and report; what cannot be read is a finding. ``resume`` is a file that keeps what is done,
    ``merger`` the table's own.

    If the table changes each time it is checked, the findings of the last time are reported, with a warning.

    Raises:
        StorageError: the store refused.
        InvalidQueryError: ``resume`` cannot be the file of a check's progress.
    """
    began = time.monotonic()
    texts = options or {}
    for _ in range(_MOST_TIMES):
        report = _verify_once(snapshot, metadata, data, texts, on_progress, resume, merger)
        if report.is_right:
            break
        now = open_snapshot(snapshot.files, timezone=snapshot.timezone)
        if not _has_changed(snapshot, now):
            break
        snapshot = now
    else:
        text = "The table changed while it was checked, each time: findings may be the doing of a writer at work."
        warnings.warn(HoodieWarning(text), stacklevel=3)
    return replace(report, seconds=time.monotonic() - began)


def _has_changed(before: Snapshot, now: Snapshot) -> bool:
    """Whether instants completed or went, or the table's properties changed."""
    states = [{(each.request_time, each.completion_time) for each in each.timeline.timeline} for each in (before, now)]
    return states[0] != states[1] or before.config != now.config


def _verify_once(
    snapshot: Snapshot,
    metadata: bool,
    data: bool,
    texts: Mapping[str, str],
    on_progress: OnEntries | None,
    resume: str | PathLike[str] | None,
    merger: Merger | None,
) -> VerifyReport:
    began = time.monotonic()
    check = _Check(snapshot, texts, on_progress, merger)
    if resume is not None:
        check.progress = VerifyProgress(resume, describe_check(snapshot, texts, data=data, metadata=metadata))
    parts: list[PartReport] = []
    done = False
    try:
        if data:
            parts.append(check.check_data())
        if metadata and snapshot.config.metadata_partitions:
            parts += check.check_metadata()
        done = True
    finally:
        if check.progress is not None:
            check.progress.close(done=done)
    restarted = None if check.progress is None else check.progress.restarted
    seconds = time.monotonic() - began
    return VerifyReport(snapshot.config.name, snapshot.instant, tuple(parts), seconds, check.resumed, restarted)


@dataclass
class _Check:
    """A check under way."""

    snapshot: Snapshot
    options: Mapping[str, str]
    on_progress: OnEntries | None
    merger: Merger | None = None
    progress: VerifyProgress | None = None
    resumed: int = 0

    def check_data(self) -> PartReport:
        """Read every newest slice whole, with sizes and counts as the commits say."""
        report = PartReport(DATA)
        if self.snapshot.instant is None:
            return report
        try:
            options = {**self.options, METADATA_ENABLE: "false"}
            scan = make_scan(self.snapshot, integrity="strict", options=options, merger=self.merger)
            tasks = [each for each in scan.tasks() if isinstance(each, ScanTask)]
        except HoodieError as error:
            report.note("unreadable", self.snapshot.config.name, str(error))
            return report
        for number, task in enumerate(tasks, 1):
            place = f"{task.file_slice.partition_path}/{task.file_slice.file_id}"
            report.add(self._do(DATA, place, partial(_check_slice, task, place)))
            if self.on_progress is not None:
                self.on_progress(DATA, number, len(tasks))
        return report

    def check_metadata(self) -> list[PartReport]:
        """Check every partition of the metadata table."""
        snapshot = self.snapshot
        try:
            view = open_metadata_view(snapshot)
            definitions = read_definitions(snapshot.files, snapshot.config)
        except HoodieError as error:
            _raise_refusal(error)
            broken = PartReport("metadata table")
            broken.note("unreadable", snapshot.config.name, str(error))
            return [broken]
        if view is None:
            return []
        return [
            self._do(name, "", partial(self._check_partition, name, self._make_source(definition), view))
            for name, definition in (
                (name, definitions.get(name)) for name in sorted(snapshot.config.metadata_partitions)
            )
        ]

    def _make_source(self, definition: IndexDefinition | None) -> IndexSource:
        return IndexSource(self.snapshot, definition, self.options, self.merger)

    def _check_partition(self, name: str, source: IndexSource, view: MetadataView) -> PartReport:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HoodieWarning)  # what a read skips, the check of the data tells
                if name == FILES:
                    source = replace(source, left_out=find_leftovers(self.snapshot, view))
                return check_partition(source, name, view, self.on_progress)
        except UnsupportedFeatureError as error:
            return PartReport(name, unchecked=error.message)
        except HoodieError as error:
            _raise_refusal(error)
            broken = PartReport(name)
            broken.note("unreadable", name, str(error))
            return broken

    def _do(self, part: str, place: str, check: Callable[[], PartReport]) -> PartReport:
        """Return the report of a piece: the one that is kept, else a new one."""
        if self.progress is None:
            return check()
        known = self.progress.find(part, place)
        if known is not None:
            self.resumed += known.checked
            return known
        report = check()
        self.progress.save(part, report, place)
        return report


def _check_slice(task: ScanTask, place: str) -> PartReport:
    report = PartReport(DATA, checked=1)
    try:
        with closing(task.to_batches()) as batches:
            for _ in batches:
                pass
    except HoodieError as error:
        _raise_refusal(error)
        report.note("unreadable", place, str(error))
    return report


def _raise_refusal(error: HoodieError) -> None:
    """Raise what a store refused: that tells nothing of the table, and is no finding to be kept for a later run."""
    if isinstance(error, StorageError) and not isinstance(error, FileMissingError):
        raise error
