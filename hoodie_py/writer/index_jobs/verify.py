"""Verify a table: its files, block by block, and each entry of its metadata table (Hudi
``HoodieMetadataTableValidator``).

Nothing is written and no lock is taken: the table is checked as of the snapshot. A writer at work meanwhile makes the
metadata table newer than the snapshot, and removes files. So if something is found and the table has changed, the check
is repeated on the current table. A file can keep the progress of a check (``VerifyProgress``).
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from hoodie_py.errors import (
    FileMissingError,
    HoodieError,
    HoodieWarning,
    InvalidQueryError,
    StorageError,
    UnsupportedFeatureError,
)
from hoodie_py.formats.indexes.definitions import FILES_PARTITION, IndexDefinition
from hoodie_py.options.read import METADATA_ENABLE
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.indexes.soundness import make_lost_groups, may_have_no_groups
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import MetadataView, read_definitions
from hoodie_py.table.scan.scan import make_scan
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.indexes.files import find_cleaned, find_leftovers
from hoodie_py.writer.indexes.registry import get_index
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.verify_report import Finding, OnEntries, PartReport, VerifyReport

_FORM = 2  # increase it when a check looks at more, or lines change their meaning
_LONGEST = 1 << 30
_NAMES = {
    "table": "it is of another table",
    "state": "the table has changed since",
    "options": "it was made with other options",
    "verify": "another version of hoodie_py made it",
}


class VerifyProgress:
    """The parts that are done, and their reports, in a file: a check that was killed goes on where it stopped.

    The file contains a line of JSON for the state of the table and the options, then one for each part that is done: a
    file slice, or a partition of the metadata table. Lines are only added. A line that was not written completely, or
    that this package would not write, does not count, nor do the lines after it.

    Progress counts only for the same table, at the same instants, with the same options, checked as this version does.
    Otherwise the file is begun anew, and the report gives the reason. Files that were damaged after they were checked
    are not looked at again.

    Args:
        path: the file; it need not exist.
        about: what is checked; see ``describe_check``.

    Attributes:
        restarted: why the file's content does not count; None if it counts, or if there was no file.

    Raises:
        InvalidQueryError: the path is a folder, or a file with other content.
    """

    def __init__(self, path: str | PathLike[str], about: Mapping[str, str]) -> None:
        self._path = Path(path)
        self._done: dict[tuple[str, str], PartReport] = {}
        self.restarted: str | None = None
        header = {"verify": _FORM, **about}
        if not self._path.parent.is_dir() or self._path.is_dir():
            raise InvalidQueryError("The progress of a check goes to a file in a folder that exists.", path=str(path))
        lines = self._read_lines()
        if lines:
            self.restarted = _find_difference(lines[0], header)
            if self.restarted is None:
                self._take(lines[1:])
        self._file = self._path.open("w", encoding="utf-8")
        self._add(header)
        for (part, place), report in self._done.items():
            self._add({"part": part, "place": place, "report": asdict(report)})

    def find(self, part: str, place: str = "") -> PartReport | None:
        """Return the report of a part that was checked before; None if it was not."""
        return self._done.get((part, place))

    def save(self, part: str, report: PartReport, place: str = "") -> None:
        """Note that a part is done."""
        self._add({"part": part, "place": place, "report": asdict(report)})

    def close(self, *, done: bool) -> None:
        """Close the file, and remove it if the check is done: the next one looks at everything."""
        self._file.close()
        if done:
            self._path.unlink(missing_ok=True)

    def _add(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def _read_lines(self) -> list[dict[str, Any]]:
        """Return the lines before the first that is not whole."""
        if not self._path.exists() or not self._path.stat().st_size:
            return []
        found: list[dict[str, Any]] = []
        with self._path.open(encoding="utf-8", errors="replace") as file:
            for line in iter(lambda: file.readline(_LONGEST), ""):
                try:
                    value = json.loads(line) if line.endswith("\n") else None
                except ValueError:
                    value = None
                if not isinstance(value, dict):
                    break
                found.append(value)
        if not found or "verify" not in found[0]:
            raise InvalidQueryError(
                "This file is not the progress of a check.", hint="Name another file.", path=str(self._path)
            )
        return found

    def _take(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            try:
                self._done[line["part"], line["place"]] = _read_report(line["report"])
            except (KeyError, TypeError):
                break


def describe_check(snapshot: Snapshot, options: Mapping[str, str], *, data: bool, metadata: bool) -> dict[str, str]:
    """Return a description of what is checked: the table, its instants and properties, the options."""
    instants = [(each.request_time, each.completion_time, each.action, each.state) for each in snapshot.timeline]
    state = repr((snapshot.instant, instants, sorted(snapshot.config.properties.items())))
    chosen = repr((data, metadata, sorted(options.items())))
    return {
        "table": snapshot.files.uri,
        "state": hashlib.sha256(state.encode()).hexdigest(),
        "options": hashlib.sha256(chosen.encode()).hexdigest(),
    }


def _find_difference(found: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    for name, why in _NAMES.items():
        if found.get(name) != header[name]:
            return why
    return None


def _read_report(value: Mapping[str, Any]) -> PartReport:
    """Return the report in a line.

    Raises:
        KeyError: it lacks a field.
        TypeError: it is no report.
    """
    facts = {each.name: value[each.name] for each in fields(PartReport)}
    lists = {name: [Finding(**each) for each in facts[name]] for name in ("findings", "remarks")}
    return PartReport(**{**facts, **lists})


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
    """Check a table and report; a file that cannot be read is a finding.

    ``resume``: a file that keeps the progress. ``merger``: the table's own. If the table changes each time it is
    checked, the findings of the last time are reported, with a warning.

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
        # A writer at work may be the reason: check the table again as it is by then.
        now = open_snapshot(snapshot.files, timezone=snapshot.timezone)
        if not _has_changed(snapshot, now):
            break
        snapshot = now
    else:
        text = "The table changed while it was checked, each time: findings may be the doing of a writer at work."
        warnings.warn(HoodieWarning(text), stacklevel=3)
    return replace(report, seconds=time.monotonic() - began)


def _has_changed(before: Snapshot, now: Snapshot) -> bool:
    """Whether instants completed or disappeared, or the table's properties changed."""
    states = [{(each.request_time, each.completion_time) for each in each.timeline} for each in (before, now)]
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
    """A running check."""

    snapshot: Snapshot
    options: Mapping[str, str]
    on_progress: OnEntries | None
    merger: Merger | None = None
    progress: VerifyProgress | None = None
    resumed: int = 0

    def check_data(self) -> PartReport:
        """Read every newest slice completely, and compare sizes and counts with the commits."""
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
                warnings.simplefilter("ignore", HoodieWarning)  # the check of the data reports what a read skips
                if name == FILES_PARTITION:
                    source = replace(source, left_out=find_leftovers(self.snapshot, view) | find_cleaned(self.snapshot))
                return _check_partition(source, name, view, self.on_progress)
        except UnsupportedFeatureError as error:
            return PartReport(name, unchecked=error.message)
        except HoodieError as error:
            _raise_refusal(error)
            broken = PartReport(name)
            broken.note("unreadable", name, str(error))
            return broken

    def _do(self, part: str, place: str, check: Callable[[], PartReport]) -> PartReport:
        """Return the report of a piece: the saved one, else a new one."""
        if self.progress is None:
            return check()
        known = self.progress.find(part, place)
        if known is not None:
            self.resumed += known.checked
            return known
        report = check()
        self.progress.save(part, report, place)
        return report


def _check_partition(
    source: IndexSource, partition: str, view: MetadataView, on_entries: OnEntries | None
) -> PartReport:
    """Check a partition, which must have file groups of its own, unless it rightly has none yet.

    File groups of another index are wrong: look-ups by key count them, and so miss entries. Java 1.2.0 creates such
    groups: its clean writes the deletes of an expression index into ``column_stats`` or ``bloom_filters``
    (``ExpressionIndexer``).
    """
    groups = view.list_groups(partition)
    if not groups and not may_have_no_groups(view, partition):
        report = PartReport(partition)
        lost = make_lost_groups(view, partition)
        report.note("missing", partition, lost.message if lost.hint is None else f"{lost.message} {lost.hint}")
        return report
    index = get_index(partition)
    report = index.check(source, view, on_entries)
    for group in groups:
        if not group.file_id.startswith(index.group_prefix):
            text = "the file group is of another index, so look-ups miss entries; drop and build the partition anew"
            report.note("foreign", group.file_id, text)
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
    """Raise the error if the store refused: that is no fact about the table, and no finding to keep for a later run."""
    if isinstance(error, StorageError) and not isinstance(error, FileMissingError):
        raise error
