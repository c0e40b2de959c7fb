"""Makes the scan of the changes that a range of commits made (Hudi's CDC query, ``CDCRelation``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.table_config import CDC_ENABLED
from hoodie_py.options.read import AS_OF_INSTANT
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadInfo, choose_batch_rows
from hoodie_py.table.changes.columns import list_image_fields, make_change_schema
from hoodie_py.table.changes.plan import ChangesPlan
from hoodie_py.table.changes.steps import Step, list_slices
from hoodie_py.table.changes.task import ChangesTask
from hoodie_py.table.incremental.commit_range import EARLIEST, CommitRange, resolve_range
from hoodie_py.table.scan.arguments import ScanArguments, read_option_texts
from hoodie_py.table.scan.query import Request, Task
from hoodie_py.table.scan.scan import Scan, make_query_scan
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.time_travel import AsOf, parse_zone


def make_changes_scan(
    snapshot: Snapshot,
    start: AsOf | None = EARLIEST,
    end: AsOf | None = None,
    as_structs: bool = False,
    *,
    options: Mapping[str, Any] | None = None,
    **arguments: Unpack[ScanArguments],
) -> Scan:
    """Return a scan of the changes of the commits after ``start`` and up to ``end``; see ``HoodieTable.changes``.

    Raises:
        InvalidQueryError: the table has no change data, a bad range, or an argument that is not valid.
    """
    texts = read_option_texts(options)
    if not snapshot.config.cdc_enabled:
        raise InvalidQueryError(
            f"The table has no change data: its property {CDC_ENABLED} is not true.",
            table=snapshot.config.name,
            hint=f"Create the table with properties={{{CDC_ENABLED!r}: 'true'}}. On any table incremental() gives the "
            "rows that changed.",
        )
    if AS_OF_INSTANT.find_text(texts) or snapshot.is_time_travel:
        raise InvalidQueryError("A range of commits has no instant of the past.", hint="Give the range's end instead.")
    zone = parse_zone(snapshot.timezone, snapshot.config.timezone)
    span = resolve_range(snapshot.timeline, start, end, texts, zone)
    images = list_image_fields(snapshot.schema.arrow).names
    if arguments.get("batch_rows") is None:
        arguments["batch_rows"] = choose_batch_rows(2 * len(images))
    return make_query_scan(snapshot, ChangesQuery(span, as_structs), options=texts, **arguments)


@dataclass(frozen=True)
class ChangesQuery:
    """The changes of a range of commits. ``as_structs``: images are structs, not texts."""

    commit_range: CommitRange
    as_structs: bool = False
    kind: str = "cdc"

    def find_schema(self, snapshot: Snapshot) -> pa.Schema:
        """Return the columns of change data."""
        return make_change_schema(snapshot.schema.arrow, as_structs=self.as_structs)

    def make_tasks(self, request: Request) -> list[ChangesTask]:
        """Return one task for each file group that the range touched."""
        plan = ChangesPlan(request.snapshot, self.commit_range, request.options)
        return [
            ChangesTask(
                steps,
                _make_info(request, key, steps),
                self.as_structs,
                plan.available,
                request.columns,
                request.predicate,
                request.options,
                request.merger,
                request.limit,
            )
            for key, steps in plan.make_steps()
        ]

    def iterate_tasks(self, request: Request) -> Iterator[Sequence[Task]]:
        """Yield all tasks at once: commits name the files."""
        yield self.make_tasks(request)


def _make_info(request: Request, key: tuple[str, str], steps: tuple[Step, ...]) -> ReadInfo:
    """Return the facts for reading the slices of one file group."""
    info = request.snapshot.read_info(FileSlice(*key, "", None, ()))
    if request.options.integrity != "strict":
        return info
    from hoodie_py.table.view.integrity import find_expected_sizes

    slices = [file_slice for step in steps for file_slice in list_slices(step)]
    return replace(info, expected_sizes=find_expected_sizes(request.snapshot.timeline, slices))
