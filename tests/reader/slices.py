"""Small file slices on disk: a real Parquet base file, real log files, and what plain Python makes of them."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyroaring import BitMap64

from hoodie_py import FileGroupReader, FileSlice, RecordMerger
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.deletes.decoder import OrderingKind
from hoodie_py.formats.log.framing import BlockType, HeaderKey
from hoodie_py.formats.names import LogFileName
from hoodie_py.options.read import UNAVAILABLE_VALUE
from hoodie_py.reader.file_slice import BaseFile, BlockRules, LogFile
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from tests.formats.log_writer import block, data_block, deletes

FILE_ID = "11111111-2222-3333-4444-555555555555-0"
BASE_INSTANT = "20260101000000000"
UNAVAILABLE = "__gone__"
SCHEMA = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("rank", pa.int64()),
        ("v", pa.int64()),
        ("s", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
_AVRO_TYPES = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
}


@dataclass(frozen=True)
class Version:
    """One version of one record.

    ``kind`` is row, flagged (a delete with data) or block (an entry of a delete block; commit time orders it where its
    ``ts`` is None); ``absent`` names columns that the row of a partial block lacks.
    """

    key: str
    kind: str = "row"
    ts: int | None = 5
    rank: int | None = 5
    v: int | None = 1
    s: str | None = "s"
    absent: tuple[str, ...] = ()

    @property
    def is_delete(self) -> bool:
        return self.kind != "row"

    @property
    def unordered(self) -> bool:
        return self.kind == "block" and self.ts is None

    @property
    def values(self) -> dict[str, Any]:
        data = {"ts": self.ts, "rank": self.rank, "v": self.v, "s": self.s}
        whole = {"_hoodie_record_key": self.key, "id": self.key, **data, "_hoodie_is_deleted": self.kind == "flagged"}
        return {name: value for name, value in whole.items() if name not in self.absent}


Merge = Callable[[Version, Version], Version]


def config_of(
    mode: MergeMode = MergeMode.CUSTOM, merge_properties: Mapping[str, str] | None = None, **values: Any
) -> TableConfig:
    """Properties of a version 9 table ordered by ts."""
    given = {"merge_strategy_id": "any", "payload_class": None, "ordering_fields": ("ts",), **values}
    properties = {UNAVAILABLE_VALUE: UNAVAILABLE, **(merge_properties or {})}
    return TableConfig("t", 9, mode, merge_properties=properties, record_key_fields=("id",), **given)


def write_slice(
    folder: Path,
    base: Sequence[Version],
    log: Sequence[Version],
    *,
    schema: pa.Schema = SCHEMA,
    row_group_rows: int = 999,
    positions: bool = False,
) -> FileSlice:
    """Write base rows and log versions, a log file for each run of versions that one block can hold.

    With ``positions`` blocks whose keys are all in the base file have the positions of their rows.
    """
    base_file = None
    if base:
        table = pa.Table.from_pylist([version.values for version in base], schema)
        pq.write_table(table, folder / "base.parquet", row_group_size=row_group_rows)
        base_file = BaseFile("base.parquet", (folder / "base.parquet").stat().st_size, BASE_INSTANT, FILE_ID)
    runs = [
        list(run) for _, run in itertools.groupby(log, key=lambda version: (version.kind == "block", version.absent))
    ]
    places = {version.key: place for place, version in enumerate(base)} if positions else {}
    if places:
        runs = [rising for run in runs for rising in _rising(run, places)]
    logs = tuple(_log(folder, schema, number, run, places) for number, run in enumerate(runs))
    return FileSlice("", FILE_ID, BASE_INSTANT, base_file, logs)


def _rising(run: Sequence[Version], places: Mapping[str, int]) -> list[list[Version]]:
    """Cut a run where positions do not rise, as a block has them in rising order."""
    parts: list[list[Version]] = [[run[0]]]
    for before, version in itertools.pairwise(run):
        if places.get(before.key, 0) < places.get(version.key, -1):
            parts[-1].append(version)
        else:
            parts.append([version])
    return parts


def _positions(run: Sequence[Version], places: Mapping[str, int]) -> dict[HeaderKey, str]:
    if not all(version.key in places for version in run):
        return {}
    bitmap = BitMap64([places[version.key] for version in run])
    return {
        HeaderKey.RECORD_POSITIONS: base64.b64encode(bitmap.serialize()).decode(),
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: BASE_INSTANT,
    }


def _log(folder: Path, schema: pa.Schema, number: int, run: Sequence[Version], places: Mapping[str, int]) -> LogFile:
    instant = f"2026010200000{number:04}"
    headers = _positions(run, places)
    if run[0].kind == "block":
        entries = deletes([(v.key, "", _ordering(v.ts, schema)) for v in run])
        data = block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant, **headers}, entries)
    else:
        fields = [field for field in schema if field.name not in run[0].absent]
        avro = {
            "type": "record",
            "name": "r",
            "fields": [{"name": f.name, "type": ["null", _AVRO_TYPES[f.type]], "default": None} for f in fields],
        }
        headers |= {HeaderKey.IS_PARTIAL: "true"} if run[0].absent else {}
        data = data_block(instant, avro, [version.values for version in run], headers)
    name = LogFileName(FILE_ID, instant, 1, "0-0-0")
    (folder / name.name).write_bytes(data)
    return LogFile(name.name, len(data), name)


def _ordering(value: int | None, schema: pa.Schema) -> Any:
    if value is None:
        return OrderingKind.INT, 0  # how Java writes "no ordering"
    return (OrderingKind.INT if pa.types.is_int32(schema.field("ts").type) else OrderingKind.LONG), value


def reader_of(
    folder: Path,
    file_slice: FileSlice,
    config: TableConfig,
    *,
    columns: Sequence[str] | None = None,
    merger: RecordMerger | type[RecordMerger] | None = None,
    batch_rows: int = 1000,
    options: Mapping[str, str] | None = None,
    schema: pa.Schema = SCHEMA,
    defaults: Mapping[str, Any] | None = None,
    memory_limit: int | None = None,
) -> FileGroupReader:
    """Open a slice."""
    info = ReadInfo(TableFiles.open(str(folder)), config, schema, defaults or {}, BlockRules())
    settings = ReadOptions(batch_rows, memory_limit=memory_limit, options=options or {})
    return FileGroupReader(file_slice, info, columns, merger, settings)


def rows_of(reader: FileGroupReader) -> list[dict[str, Any]]:
    """Return the rows of a read in an order that compares."""
    return ordered(row for batch in reader.to_batches() for row in batch.to_pylist())


def ordered(rows: Any) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def sequential(base: Sequence[Version], log: Sequence[Version], merge: Merge) -> list[Version]:
    """The reference: one record at a time, the log first, then log on base."""
    state: dict[str, Version] = {}
    for version in log:
        state[version.key] = merge(state[version.key], version) if version.key in state else version
    for row in base:
        state[row.key] = merge(row, state[row.key]) if row.key in state else row
    return [version for version in state.values() if not version.is_delete]


def projected(versions: Sequence[Version], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows that versions stand for."""
    return ordered({name: version.values.get(name) for name in columns} for version in versions)


def logs(keys: str = "abcd", size: int = 25) -> st.SearchStrategy[list[Version]]:
    """Random log versions over few keys and few values, so that ties, reversals and defaults are common."""
    small = st.integers(0, 4)
    text = st.sampled_from(["x", "y", UNAVAILABLE, None])
    row = st.builds(
        Version,
        st.sampled_from(keys),
        st.sampled_from(["row", "row", "flagged"]),
        small,
        small,
        st.none() | small,
        text,
    )
    gone = st.builds(Version, st.sampled_from(keys), st.just("block"), st.none() | small)
    return st.lists(row | row | gone, max_size=size)


def bases(keys: str = "abcdef") -> st.SearchStrategy[list[Version]]:
    """Random base files: at most one live row a key."""
    rows = st.lists(st.sampled_from(keys), unique=True, max_size=len(keys))
    values = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=len(keys), max_size=len(keys))
    return st.tuples(rows, values).map(
        lambda drawn: [Version(k, ts=t, rank=t, v=n) for k, (t, n) in zip(*drawn, strict=False)]
    )
