"""Small tables made here, records placed by hand, and what must hold of tables after writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.reader.merge.merger import RecordMerger
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.handles.data_file import CommitFacts
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.pipeline.assign import AssignedRecords, assign_files, assign_new_files, list_slices_of
from hoodie_py.writer.pipeline.local_engine import LocalEngine, PlacedRecords
from hoodie_py.writer.pipeline.write import Write
from hoodie_py.writer.records import TaggedRecords, WriteOperation, WriteRecords
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("name", pa.string())])
FILE_BYTES = 1 << 20

Row = dict[str, Any]


Base = TypeVar("Base", Path, str)


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of table; one that ``captures`` has change data, a ``virtual`` one no meta fields."""

    version: int
    merge_on_read: bool
    partitioned: bool = True
    captures: bool = False
    virtual: bool = False

    def __str__(self) -> str:
        kind = "mor" if self.merge_on_read else "cow"
        name = f"v{self.version}-{kind}-{'part' if self.partitioned else 'flat'}"
        return f"{name}{'-cdc' if self.captures else ''}{'-virtual' if self.virtual else ''}"

    def create(self, base: Base, **more: Any) -> Base:
        """Make an empty table."""
        if self.captures:
            more = {**more, "properties": {"hoodie.table.cdc.enabled": "true", **more.get("properties", {})}}
        if self.virtual:
            more = {**more, "properties": {"hoodie.populate.meta.fields": "false", **more.get("properties", {})}}
        HoodieTable.create(
            base,
            SCHEMA,
            record_key="id",
            ordering="ts",
            partition_by=["part"] if self.partitioned else (),
            table_type="MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            table_version=self.version,
            **more,
        )
        return base


KINDS = [Kind(version, mor, part) for version in (9, 8, 6) for mor in (True, False) for part in (True, False)]


def row(number: int, ts: int = 1, name: str = "a") -> Row:
    return {"id": f"k{number}", "part": f"p{number % 2}", "ts": ts, "name": name}


def records(rows: Sequence[Row], *, partitioned: bool = True, deletes: Iterable[int] = ()) -> WriteRecords:
    """Rows as records; ``deletes`` are numbers of rows that delete."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    gone = set(deletes)
    paths = table["part"] if partitioned else pa.chunked_array([pa.array([""] * len(rows), pa.string())])
    marks = pa.chunked_array([pa.array([i in gone for i in range(len(rows))], pa.bool_())])
    return WriteRecords(table, table["id"], paths, marks if gone else None, (table["ts"],))


def tagged(snapshot: Snapshot, given: WriteRecords) -> TaggedRecords:
    """Look the keys up in the base files of their partitions, the plain way."""
    found: dict[tuple[str, str], tuple[str, str, int]] = {}
    for each in snapshot.view.list_slices():
        if each.base_file is not None:
            column = pq.read_table(f"{snapshot.files.uri}/{each.base_file.path}", columns=["_hoodie_record_key"])
            for at, key in enumerate(column[0].to_pylist()):
                found[each.partition_path, key] = (each.file_id, each.base_file.instant, at)
    assert given.partition_paths is not None
    pairs = zip(given.partition_paths.to_pylist(), given.keys.to_pylist(), strict=True)
    places = [found.get(pair, (None, None, -1)) for pair in pairs]
    return TaggedRecords(
        given,
        pa.array([each[0] for each in places], pa.string()),
        pa.array([each[1] for each in places], pa.string()),
        np.array([each[2] for each in places], np.int64),
    )


def schema_of(snapshot: Snapshot) -> OutputSchema:
    """The schema of the table's files."""
    text = snapshot.config.create_schema
    assert text is not None
    record = json.loads(text)
    meta = [{"name": name, "type": ["null", "string"], "default": None} for name in META_FIELDS]
    avro = json.dumps({**record, "fields": [*meta, *record["fields"]]})
    return OutputSchema(AvroSchema.parse(avro).arrow, avro, text)


def begun(snapshot: Snapshot, instant: str, action: str) -> CommitFacts:
    """What tasks of a commit know; its inflight file is there."""
    facts = CommitFacts(snapshot.files, snapshot.config, instant, action, 77, schema_of(snapshot))
    snapshot.files.put(TimelineWriter(snapshot.files, snapshot.config).locate(facts.inflight), b"")
    return facts


def session(files: TableFiles | Path, options: Mapping[str, Any] | None = None) -> WriteSession:
    place = TableFiles.open(files) if isinstance(files, Path) else files
    return WriteSession.open(open_snapshot(place), options={**QUICK, **(options or {})})


def put(
    files: TableFiles | Path,
    given: WriteRecords,
    operation: WriteOperation = WriteOperation.UPSERT,
    *,
    options: Mapping[str, Any] | None = None,
    merger: type[RecordMerger] | None = None,
    replaced: Mapping[str, tuple[str, ...]] | None = None,
) -> WriteResult:
    """Write records as the writer does once their keys are known."""
    doing = session(files, options)
    snapshot = undo_failed_writes(doing)
    write = Write(doing, snapshot, operation, merger)
    return write.commit(held(placed(snapshot, given, operation)), schema_of(snapshot), replaced=replaced)


def held(routed: AssignedRecords) -> PlacedRecords:
    return PlacedRecords(routed, LocalEngine())


def placed(
    snapshot: Snapshot, given: WriteRecords, operation: WriteOperation = WriteOperation.UPSERT
) -> AssignedRecords:
    if operation in (WriteOperation.UPSERT, WriteOperation.DELETE):
        return assign_files(tagged(snapshot, given), list_slices_of(given, snapshot), FILE_BYTES)
    return assign_new_files(given, FILE_BYTES)


def contents(base: Path | HoodieTable, **scan: Any) -> dict[str, tuple[int, str]]:
    """The table's rows as ts and name by id; a repeated id is an error."""
    table = HoodieTable.open(base) if isinstance(base, Path) else base
    rows = table.scan(columns=["id", "ts", "name"], **scan).to_arrow().to_pylist()
    found = {each["id"]: (each["ts"], each["name"]) for each in rows}
    assert len(found) == len(rows), "an id is there twice"
    return found


def data_files(base: Path) -> set[str]:
    """Base and log files of the table, relative to it."""
    files = [path for path in base.rglob("*") if path.is_file() and ".hoodie" not in path.parts]
    return {path.relative_to(base).as_posix() for path in files if not path.name.startswith(".hoodie_partition")}
