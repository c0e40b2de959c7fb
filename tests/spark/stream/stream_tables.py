"""Tables for streams, and a stream driven as Spark drives it: pickled copies, offsets that went through JSON."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from hoodie_py import HoodieTable
from hoodie_py.spark.data_source import HoodieSource

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string()), ("value", pa.int64())])

Row = tuple[str, int]


def make_table(path: Path, version: int = 9, table_type: str = "MERGE_ON_READ", **options: Any) -> HoodieTable:
    return HoodieTable.create(
        str(path), SCHEMA, record_key="id", ordering="ts", partition_by=["part"], table_type=table_type,
        table_version=version, **options,
    )  # fmt: skip


def upsert(table: HoodieTable, number: int, keys: str, **options: Any) -> set[Row]:
    """Write a commit whose rows have a value, and return them as a stream should give them."""
    table.upsert(
        pa.Table.from_pylist(
            [{"id": key, "ts": number, "part": "p" + key[0], "value": number} for key in keys], schema=SCHEMA
        ),
        **options,
    )
    return {(key, number) for key in keys}


class Stream:
    """A streaming query without Spark; its checkpoint outlives ``restart``."""

    def __init__(self, path: Path | str, **options: Any) -> None:
        self.options = {"path": str(path), **{name: str(value) for name, value in options.items()}}
        self.offset: Any = None
        self.planned: Any = None
        self.restart()

    def restart(self, **options: Any) -> None:
        source = HoodieSource({**self.options, **options})
        schema = source.schema()
        self._source = pickle.loads(pickle.dumps(source))
        self.reader = self._source.streamReader(schema)
        self._worker = pickle.loads(pickle.dumps(self._source.streamReader(schema)))
        self.columns = schema.fieldNames()

    def plan(self, limit: ReadLimit | None = None) -> bool:
        """Decide where the next batch ends; say whether there is one."""
        if self.offset is None:
            self.offset = through_json(self.reader.initialOffset())
        asked = self.reader.getDefaultReadLimit() if limit is None else limit
        self.planned = through_json(self.reader.latestOffset(self.offset, asked))
        return bool(self.planned != self.offset)

    def read_planned(self) -> list[dict[str, Any]]:
        partitions = [pickle.loads(pickle.dumps(each)) for each in self.reader.partitions(self.offset, self.planned)]
        return [
            row
            for partition in partitions
            for batch in self._worker.read(partition)
            for row in batch.to_pylist()
        ]  # fmt: skip

    def commit(self) -> None:
        self.offset = self.planned

    def batches(self, limit: ReadLimit | None = None) -> Iterator[list[dict[str, Any]]]:
        while self.plan(limit):
            rows = self.read_planned()
            assert sort(self.read_planned()) == sort(rows)
            self.commit()
            yield rows

    def read(self) -> set[Row]:
        """Read all there is in one batch."""
        return {row for batch in self.batches(ReadAllAvailable()) for row in pairs(batch)}


def sort(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def pairs(rows: list[dict[str, Any]]) -> set[Row]:
    found = [(row["id"], row["value"]) for row in rows]
    assert len(set(found)) == len(found)
    return set(found)


def through_json(offset: Any) -> Any:
    return json.loads(json.dumps(offset))
