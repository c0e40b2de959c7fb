"""Random kinds of tables for the differential test: schema, keys, partitions, merge mode and options, by a seed."""

from __future__ import annotations

import datetime as dt
import random
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Make = Callable[[random.Random], Any]

ORDERING = "ts"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CLASSES = "org.apache.hudi.common.model"
_KEYS = "org.apache.hudi.keygen"
_VALIDATION = "hoodie.write.complex.keygen.validation"
_ALSO_OF_SERVICES = ("hoodie.metadata.", _VALIDATION)


def _make_text(lot: random.Random) -> str:
    return "".join(lot.choice(string.ascii_letters + "äß漢 %'/=") for _ in range(lot.randrange(9)))


def _make_time(lot: random.Random) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=lot.randrange(-(10**15), 2 * 10**15))


_VALUES: Mapping[pa.DataType, Make] = {
    pa.int32(): lambda lot: lot.randrange(-(2**31), 2**31),
    pa.int64(): lambda lot: lot.choice((0, -1, 7, lot.randrange(-(2**63), 2**63))),
    pa.float32(): lambda lot: lot.randrange(-1000, 1000) / 8,
    pa.float64(): lambda lot: lot.choice((0.0, -1.5, lot.gauss(0, 1e6))),
    pa.string(): _make_text,
    pa.binary(): lambda lot: lot.randbytes(lot.randrange(6)),
    pa.bool_(): lambda lot: lot.random() < 0.5,
    pa.date32(): lambda lot: dt.date(1970, 1, 1) + dt.timedelta(days=lot.randrange(-9000, 30000)),
    pa.timestamp("us", "UTC"): _make_time,
    pa.decimal128(9, 3): lambda lot: Decimal(lot.randrange(-(10**9) + 1, 10**9)).scaleb(-3),
    pa.decimal128(25, 6): lambda lot: Decimal(lot.randrange(-(10**25) + 1, 10**25)).scaleb(-6),
    pa.list_(pa.int64()): lambda lot: [lot.randrange(9) for _ in range(lot.randrange(4))],
    pa.map_(pa.string(), pa.float64()): lambda lot: [(f"k{n}", lot.random()) for n in range(lot.randrange(3))],
    pa.struct([("x", pa.int32()), ("y", pa.string())]): lambda lot: {"x": lot.randrange(9), "y": _make_text(lot)},
    pa.struct([("d", pa.date32()), ("l", pa.list_(pa.string()))]): lambda lot: {
        "d": dt.date(2026, 1, lot.randrange(1, 29)),
        "l": [_make_text(lot) for _ in range(lot.randrange(3))],
    },
}
_SHOWN = (pa.int32(), pa.int64(), pa.string(), pa.bool_())
# No date: with a global index Java compares one of the rows with a number of days, and fails.
_ORDERINGS: Mapping[pa.DataType, Callable[[int], Any]] = {
    pa.int64(): lambda number: number,
    pa.int32(): lambda number: number,
    pa.float64(): lambda number: number / 4,
    pa.timestamp("us", "UTC"): lambda number: _EPOCH + dt.timedelta(days=20000, seconds=number),
}
_PARTITIONS: Mapping[pa.DataType, Callable[[int], Any]] = {
    pa.string(): lambda number: f"p{number}",
    pa.int32(): lambda number: number,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A kind of table. ``merge_by_time`` is whether the ordering column decides, and not the order of commits."""

    seed: int
    version: int
    merge_on_read: bool
    keys: tuple[str, ...]
    partitions: Mapping[str, pa.DataType]
    ordering: pa.DataType
    merge_by_time: bool
    columns: Mapping[str, pa.DataType]
    metadata: bool
    properties: Mapping[str, str]
    writes: Mapping[str, str]
    log_format: str

    @property
    def schema(self) -> pa.Schema:
        """All columns but Hudi's own."""
        fixed = (
            [(name, pa.string()) for name in self.keys] + list(self.partitions.items()) + [(ORDERING, self.ordering)]
        )
        return pa.schema([*fixed, *self.columns.items()])

    @property
    def captures_changes(self) -> bool:
        """Whether the table logs its changes."""
        return self.properties.get("hoodie.table.cdc.enabled") == "true"

    @property
    def java_reads_changes(self) -> bool:
        """Whether the table logs its changes, and Java can show them: it fails over log files of table version 6."""
        return self.captures_changes and (self.version >= 8 or not self.merge_on_read)

    @property
    def shown_columns(self) -> set[str]:
        """Columns whose values both engines spell alike in the images of changes."""
        return {each.name for each in self.schema if each.type in _SHOWN}

    @property
    def has_buckets(self) -> bool:
        """Whether keys tell their file groups."""
        return self.writes["hoodie.index.type"] == "BUCKET"

    @property
    def table_type(self) -> str:
        """Hudi's name for the type."""
        return "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE"

    @property
    def service_options(self) -> dict[str, str]:
        """Java's options for table services."""
        return {
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": str(self.metadata).lower(),
            **{name: value for name, value in self.writes.items() if name.startswith(_ALSO_OF_SERVICES)},
        }

    @property
    def java_options(self) -> dict[str, str]:
        """Java's options for writes."""
        generator = "NonpartitionedKeyGenerator"
        if self.partitions:
            single = len(self.keys) == 1 and len(self.partitions) == 1
            generator = "SimpleKeyGenerator" if single else "ComplexKeyGenerator"
        options = {
            **self.service_options,
            "hoodie.table.name": "random",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": ",".join(self.keys),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partitions),
            "hoodie.datasource.write.keygenerator.class": f"{_KEYS}.{generator}",
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.insert.shuffle.parallelism": "1",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.delete.shuffle.parallelism": "1",
            "hoodie.bulkinsert.shuffle.parallelism": "1",
            "hoodie.logfile.data.block.format": self.log_format,  # of no concern to this package, which writes avro
            **self.properties,
            **self.writes,
        }
        if self.merge_by_time:
            options["hoodie.table.ordering.fields"] = ORDERING
        elif self.version < 8:
            options["hoodie.datasource.write.payload.class"] = f"{_CLASSES}.OverwriteWithLatestAvroPayload"
        else:
            options["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
        return options

    @property
    def our_options(self) -> dict[str, str]:
        """This package's options for writes."""
        fixed = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
        return {**fixed, "hoodie.metadata.enable": str(self.metadata).lower(), **self.writes}

    def make_row(self, number: int, time: int, lot: random.Random) -> Row:
        """Return version ``time`` of record ``number``, whose partition never changes."""
        row: Row = {name: f"{name}{number:03d}" for name in self.keys}
        row |= {name: _PARTITIONS[kind](number % 3) for name, kind in self.partitions.items()}
        row[ORDERING] = _ORDERINGS[self.ordering](time)
        for name, kind in self.columns.items():
            row[name] = None if lot.random() < 0.15 else _VALUES[kind](lot)
        return row

    def grow(self, lot: random.Random) -> Recipe:
        """Return the same kind of table with one column more."""
        return replace(self, columns={**self.columns, f"c{len(self.columns)}": lot.choice(list(_VALUES))})

    def identify(self, row: Row) -> tuple[Any, ...]:
        """Return the values of a row's keys."""
        return tuple(row[name] for name in self.keys)


def make_recipe(seed: int) -> Recipe:
    """Return the kind of table of a seed."""
    lot = random.Random(f"recipe {seed}")
    version = lot.choice((9, 9, 8, 6))
    merge_on_read = lot.random() < 0.65
    keys = ("id",) if lot.random() < 0.7 else ("id", "id2")
    kinds = lot.choice(
        (
            {},
            {"part": pa.string()},
            {"part": pa.string()},
            {"part": pa.int32()},
            {"part": pa.string(), "sub": pa.int32()},
        )
    )
    merge_by_time = lot.random() < 0.7
    columns = {f"c{each}": lot.choice(list(_VALUES)) for each in range(lot.randrange(1, 7))}
    metadata = lot.random() < 0.75
    properties: dict[str, str] = {}
    if kinds and lot.random() < 0.3:
        properties["hoodie.datasource.write.hive_style_partitioning"] = "true"
    if lot.random() < 0.25:
        properties["hoodie.table.cdc.enabled"] = "true"
        mode = lot.choice(("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"))
        properties["hoodie.table.cdc.supplemental.logging.mode"] = mode
    return Recipe(
        seed, version, merge_on_read, keys, kinds, lot.choice(list(_ORDERINGS)), merge_by_time, columns, metadata,
        properties, _choose_writes(lot, metadata=metadata), "parquet" if lot.random() < 0.25 else "avro",
    )  # fmt: skip


def _choose_writes(lot: random.Random, *, metadata: bool) -> dict[str, str]:
    writes = {
        "hoodie.parquet.small.file.limit": lot.choice(("0", "104857600")),
        f"{_VALIDATION}.enable": "false",  # one key of the complex generator needs a word
    }
    index = lot.choice(
        ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "BUCKET", *(["GLOBAL_RECORD_LEVEL_INDEX"] if metadata else []))
    )
    if index == "GLOBAL_RECORD_LEVEL_INDEX":
        level = "hoodie.metadata.global.record.level.index"
        writes |= {f"{level}.enable": "true", f"{level}.min.filegroup.count": "1"}
    if index == "BUCKET":
        writes["hoodie.bucket.index.num.buckets"] = "2"
    writes["hoodie.index.type"] = index
    if metadata and lot.random() < 0.5:
        writes["hoodie.metadata.index.column.stats.enable"] = "true"
    return writes
