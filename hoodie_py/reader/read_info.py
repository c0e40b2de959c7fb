"""What the reader of a file group needs (facts of the table, settings), immutable and picklable, and what it counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import pyarrow as pa

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.reader.file_slice import BlockRules, FileSlice, InstantRange, LogFile
from hoodie_py.reader.schema_evolution.file_mappings import FileMappings

Integrity = Literal["default", "strict"]
DEFAULT_BATCH_ROWS = 65_536
_BATCH_VALUES = 1 << 18
_LEAST_BATCH_ROWS = 16_384


def choose_batch_rows(columns: int, values: int = _BATCH_VALUES, least: int = _LEAST_BATCH_ROWS) -> int:
    """Return how many rows to read at once: fewer of wide rows, so that batches fit the processor's caches."""
    return max(least, min(DEFAULT_BATCH_ROWS, values // max(1, columns)))


class CommittedFiles(Protocol):
    """Knows which log files a completed commit wrote; picklable."""

    def find_committed(self, log_files: Collection[LogFile]) -> set[str]:
        """Return the paths of the log files that a completed commit names."""
        ...


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """The only record keys wanted: the keys ``texts``, or all keys that begin with one of them."""

    texts: tuple[str, ...]
    are_prefixes: bool = False

    @property
    def coded(self) -> list[bytes]:
        """The texts encoded as in an index of keys, sorted."""
        return sorted({text.encode("utf-8", "replace") for text in self.texts})


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
        times: time columns with the types that the Avro schema declares (``list_declared_times``); None without.
        instants: the commits whose base rows merge with the log, for incremental reads; None for all.
        bootstrapped: whether a metadata-only bootstrap made the base file: its source may lack partition columns.
        unfilled: partition columns that such a source must have, as the partition path gives no value of their type.
        numbers: string columns that files hold as times; a read returns the numbers of those times as text.
        expected_sizes: file sizes in bytes from the commits' statistics, by path; checked if integrity is "strict".
        keys: the only record keys wanted, if the query's filter names them and base files are HFiles.
        mappings: the columns' names in files of each instant, if columns are matched by id; None if by name.
        committed: knows which missing log files counted before a rollback deleted them; None if file names suffice.

    Examples:
        >>> import pickle
        >>> info = trips.read_info(trips.file_slices()[0])
        >>> info.schema == trips.schema, len(pickle.dumps(info)) < 65536
        (True, True)
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
    instants: InstantRange | None = None
    bootstrapped: bool = False
    unfilled: frozenset[str] = frozenset()
    keys: WantedKeys | None = None
    mappings: FileMappings | None = None

    def __repr__(self) -> str:
        return f"ReadInfo({self.config.name!r}, {self.files.uri}, {len(self.schema)} columns)"

    def as_stored(self, schema: pa.Schema, defaults: Mapping[str, Any]) -> ReadInfo:
        """Return the facts for reading rows as they are written to a new file, not as a query returns them.

        Rows of a bootstrap's source get the partition columns that it lacks, as the new file has no source.
        """
        fields = [name for name in self.config.partition_fields if self.bootstrapped and name in schema.names]
        known = {name: self.fallbacks[name] for name in fields if self._knows(name, schema)}
        return replace(
            self,
            schema=schema,
            defaults=defaults,
            constants={},
            fallbacks=known,
            numbers=frozenset(),
            unfilled=frozenset(fields).difference(known),
        )

    def _knows(self, name: str, schema: pa.Schema) -> bool:
        """Say whether the partition path gives a column's value, in the type that the column has in ``schema``."""
        return name in self.fallbacks and bool(self.schema.field(name).type == schema.field(name).type)

    @property
    def file_times(self) -> pa.Schema | None:
        """``times`` as files hold them: columns in ``numbers`` are plain longs.

        Java's String.valueOf prints the same numbers.
        """
        if self.times is None or not self.numbers:
            return self.times
        return pa.schema([field.with_type(pa.int64()) if field.name in self.numbers else field for field in self.times])


class Readable(Protocol):
    """A table that gives the facts for reading one of its slices."""

    def read_info(self, file_slice: FileSlice) -> ReadInfo:
        """Return the facts for one slice."""
        ...


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings of one read; plain values that travel to workers.

    Attributes:
        batch_rows: most rows in a batch.
        integrity: "strict" raises errors for corrupt log blocks, for sizes that differ from the commits' statistics
            and for missing files, which are looked for when tasks are made.
        memory_limit: most bytes of memory for logs: in one process for all slices that a scan reads at the same time,
            in Spark for each task. A larger log is folded in parts and spilled to disk. None for a share of the memory
            that the process may use (``memory.budget.compute_memory_share``).
        options: the user's reader options, by Hudi's keys.
        readers: how many slices are read at the same time and share ``memory_limit``.
        column_threads: decode the columns of base files on Arrow's threads, as there are fewer slices than cores.

    Examples:
        >>> reader = FileGroupReader(
        ...     trips.file_slices(filter="city = 'sf'")[0], trips, options=ReadOptions(batch_rows=1)
        ... )
        >>> [batch.num_rows for batch in reader.to_batches()]
        [1, 1]
    """

    batch_rows: int = DEFAULT_BATCH_ROWS
    integrity: Integrity = "default"
    memory_limit: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    readers: int = 1
    column_threads: bool = False

    def fit_columns(self, before: int, after: int) -> ReadOptions:
        """Return the settings with the batch size for another number of columns, unless the user has set one.

        Examples:
            >>> ReadOptions(batch_rows=16384).fit_columns(22, 3).batch_rows
            65536
            >>> ReadOptions(batch_rows=100).fit_columns(22, 3).batch_rows
            100
        """
        if self.batch_rows != choose_batch_rows(before):
            return self
        return replace(self, batch_rows=choose_batch_rows(after))


@dataclass(slots=True)
class SpillStats:
    """Spill files of a read: how many, and their bytes.

    Examples:
        >>> reader = FileGroupReader(trips.file_slices(filter="city = 'sf'")[0], trips)
        >>> rows = sum(batch.num_rows for batch in reader.to_batches())
        >>> reader.stats.spill
        SpillStats(files=... bytes=0)
    """

    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class ReadStats:
    """Counts of one read of a file group (Hudi's HoodieReadStats).

    Attributes:
        base_rows: rows of the base file that were read.
        inserts, updates, deletes: rows that only the log has, base rows that the log changed, keys the log deleted.
        log_records: entries of all log blocks that count.
        blocks: all log blocks.
        skipped_blocks, corrupt_blocks, rollback_blocks: log blocks that do not count, are corrupt, are rollbacks.
        log_bytes: bytes of log files read.
        spill: files written to disk to stay within ``memory_limit``.

    Examples:
        >>> reader = FileGroupReader(trips.file_slices(filter="city = 'sf'")[0], trips)
        >>> rows = sum(batch.num_rows for batch in reader.to_batches())
        >>> rows, reader.stats.updates, reader.stats.log_records
        (2, 1, 1)
    """

    base_rows: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    log_records: int = 0
    blocks: int = 0
    skipped_blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0
    log_bytes: int = 0
    spill: SpillStats = field(default_factory=SpillStats)
