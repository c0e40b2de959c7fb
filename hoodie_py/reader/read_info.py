"""What a file group's reader has to know of its table: small, immutable, picklable."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import pyarrow as pa

from hoodie_py.files import TableFiles
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.reader.file_slice import BlockRules, FileSlice, LogFile

Integrity = Literal["default", "strict"]
DEFAULT_BATCH_ROWS = 65_536


class CommittedFiles(Protocol):
    """Knows which log files hold rows that count; picklable."""

    def find_committed(self, log_files: Collection[LogFile]) -> set[str]:
        """Return paths of those that a completed commit names."""
        ...


@dataclass(frozen=True, slots=True)
class ReadInfo:
    """The facts of one table that hold for one file slice.

    Attributes:
        files: access to the table's files.
        config: the table's properties.
        schema: every column of the table, meta columns first, in the types that a read returns.
        defaults: values of columns that a log block's schema lacks, where the table schema's default is not null.
        rules: which instants' log blocks count.
        constants: columns whose value comes from the partition path, whatever the files hold.
        fallbacks: columns whose value comes from the partition path where a file lacks them.
        times: columns with times as the Avro schema declares them (``declared_times``); None without.
        numbers: columns of texts whose times log blocks give as their numbers.
        expected_sizes: what the commits say of file sizes in bytes, by path; checked when integrity is "strict".
        committed: tells log files that counted from those of writes taken back since; None where names tell.
    """

    files: TableFiles
    config: TableConfig
    schema: pa.Schema
    defaults: Mapping[str, Any]
    rules: BlockRules
    constants: Mapping[str, Any] = field(default_factory=dict)
    fallbacks: Mapping[str, Any] = field(default_factory=dict)
    expected_sizes: Mapping[str, int] = field(default_factory=dict)
    committed: CommittedFiles | None = None
    times: pa.Schema | None = None
    numbers: frozenset[str] = frozenset()

    def as_stored(self, schema: pa.Schema, defaults: Mapping[str, Any]) -> ReadInfo:
        """Return what reading takes when rows are wanted as files have them, not as a query shows them.

        Args:
            schema: of the files that the rows go to.
            defaults: values of columns that a file lacks, other than null.
        """
        return replace(self, schema=schema, defaults=defaults, constants={}, fallbacks={}, numbers=frozenset())

    @property
    def block_times(self) -> pa.Schema | None:
        """``times`` for log blocks: of columns in ``numbers`` plain longs, as Java's String.valueOf has them."""
        if self.times is None or not self.numbers:
            return self.times
        return pa.schema([field.with_type(pa.int64()) if field.name in self.numbers else field for field in self.times])


class Readable(Protocol):
    """A table that can say what reading one of its slices takes."""

    def read_info(self, file_slice: FileSlice) -> ReadInfo:
        """Return the facts for one slice."""
        ...


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings of one read; plain values that travel to workers.

    Attributes:
        batch_rows: most rows in a batch.
        integrity: "strict" makes corrupt log blocks, sizes that differ from the commits' statistics and missing files
            errors; the last are looked for where tasks are made.
        memory_limit: most bytes of memory for log sides: of all slices that a scan reads at a time in this process
            together, of each task in Spark.  A log side that needs more is folded in parts and spilled to disk.  None
            for a share of what the process may use, see ``memory_budget.memory_share``.
        options: the user's reader options, by Hudi's keys.
        readers: how many slices share ``memory_limit`` because they are read at the same time.
        column_threads: whether the columns of base files are decoded on Arrow's threads, because there are too few
            slices to keep all cores busy.
    """

    batch_rows: int = DEFAULT_BATCH_ROWS
    integrity: Integrity = "default"
    memory_limit: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    readers: int = 1
    column_threads: bool = False
