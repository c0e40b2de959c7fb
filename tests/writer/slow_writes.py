"""Writes during which something else happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hoodie_py import HoodieTable
from hoodie_py.writer.commit.conflicts import Claims
from hoodie_py.writer.commit.first_look import Intent
from hoodie_py.writer.commit.write_commit import open_commit
from hoodie_py.writer.pipeline.tasks import Tasks
from hoodie_py.writer.records import WriteOperation, WriteRecords
from tests.writer.written_tables import Kind, placed, put, records, row, schema_of, session

MOR, COW = Kind(9, True), Kind(9, False)


def start(base: Path, kind: Kind = MOR) -> Path:
    kind.create(base)
    put(base, records([row(i) for i in range(8)], partitioned=kind.partitioned), WriteOperation.INSERT)
    return base


def slowly(base: Path, given: WriteRecords, meanwhile: Callable[[], Any], **options: Any) -> None:
    """Write; something else happens between the look that the write rests on and its commit."""
    doing = session(base, options)
    snapshot = doing.look()
    routed = placed(snapshot, given)
    claims = Claims(
        frozenset(each.group for each in routed.assignments),
        None,
        frozenset(each.partition_path for each in routed.assignments if each.file_slice is None),
    )
    with open_commit(doing, Intent(WriteOperation.UPSERT, snapshot, schema_of(snapshot), claims)) as begun:
        results = [job.run() for job in Tasks(snapshot, begun.facts, doing.settings).iterate_jobs(routed)]
        meanwhile()
        begun.commit(results)


def pending(base: Path) -> list[str]:
    return [f"{each.action} {each.state}" for each in HoodieTable.open(base).timeline.select_pending()]
