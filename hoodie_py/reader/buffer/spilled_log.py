"""SpilledEntries: log entries on disk, folded part by part, as in a grace hash join.

Entries are written in log order; their rows stay in the row store's spill files. Only after the last entry is it known
whether they match by position or by key. They are then split by a hash of the position or key into parts that fit into
memory. A part keeps the log order. A fold may stop after any entry and go on from its result, so a part is folded in
portions, however many versions one key has.

Ordering values whose class differs from their column's are spilled as JSON texts. Only delete blocks have such values,
after the ordering field changed its type. A text holds pairs of a type's name and
a value, so that a value comes back with its type.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, join_batches, to_booleans
from hoodie_py.reader.buffer.folded_log import FoldedLog, HashPartition, KeyHash
from hoodie_py.reader.memory.spill import Spill, Spilled, group_to_size
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING

_MOST_PARTS = 4096
_PARTS_FOR_LIMIT = 16  # entries as large as the memory limit are split into 16 parts
_NO_POSITION = -1
_ORDER = "order."
_EXTRA = "extra."
Fold = Callable[[BufferedBatch, np.ndarray | None, int | None], tuple[BufferedBatch, np.ndarray | None]]


class SpilledEntries:
    """Entries in log order, in spill files."""

    def __init__(self, context: ArrowRecordContext, spill: Spill) -> None:
        self._context = context
        self._spill = spill
        self._writer = spill.open_writer()
        self._written: list[Spilled] = []
        self._bytes = 0
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def add(self, entries: BufferedBatch, positions: np.ndarray | None, *, block: int, late: bool) -> None:
        """Append entries of a block, with the base row of each if known.

        ``late`` is true from the first partial block on.
        """
        at_once = max(1, self._spill.budget.portion * len(entries) // max(1, count_entry_bytes(entries)))
        for start in range(0, len(entries), at_once):
            some = entries.slice(start, min(start + at_once, len(entries)))
            places = np.full(len(some), _NO_POSITION) if positions is None else positions[start : start + at_once]
            blocks, lates = np.full(len(some), block, np.int32), np.full(len(some), late, np.int8)
            batch = to_entry_batch(some, {"position": places, "block": blocks, "late": lates})
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            if self._waiting_bytes > self._spill.budget.portion:
                self._write()

    def fold(self, fold: Fold, *, by_position: bool) -> FoldedLog:
        """Fold the entries to one record per key or position.

        ``fold`` turns (entries, their positions, index of the first late one) into (records, their positions).

        Raises:
            StorageError: the disk is full or fails.
            MergeError: as ``fold`` does.
        """
        if self._waiting:
            self._write()
        self._writer.close()
        key_hash = KeyHash()
        count = self._count_parts()
        writer = self._spill.open_writer()
        folded: list[Spilled] = []
        numbers: list[int] = []
        for number, part in enumerate(self._split(key_hash, count, by_position=by_position)):
            if not part:
                continue
            numbers.append(number)
            records, positions = self._fold_part(part, fold, by_position=by_position)
            places = np.full(len(records), _NO_POSITION) if positions is None else positions
            folded.append(writer.add(to_entry_batch(records, {"position": places})))
        writer.close()
        batches = [self._spill.read_batch(each) for each in folded]
        positions_of = [get_extra(batch, "position") for batch in batches] if by_position else None
        partition = HashPartition(key_hash, count, numbers) if count > 1 else None
        return FoldedLog([from_entry_batch(self._context, batch) for batch in batches], positions_of, partition)

    def find_blocks(self, key: str) -> list[int]:
        """Return the numbers of the blocks that have versions of a key. Call it after the last ``add``."""
        found: list[int] = []
        for batch in self._read_batches(self._written):
            has = to_booleans(call("equal", batch.column("key"), pa.scalar(key)))
            found += np.unique(get_extra(batch, "block")[has]).tolist()
        return list(dict.fromkeys(found))

    def _write(self) -> None:
        batch = join_batches(self._waiting)
        self._written.append(self._writer.add(batch))
        self._bytes += batch.nbytes
        self._waiting, self._waiting_bytes = [], 0

    def _count_parts(self) -> int:
        rows = sum(each.rows for each in self._written)
        return min(_MOST_PARTS, rows, 1 + self._bytes * _PARTS_FOR_LIMIT // self._spill.budget.limit)

    def _split(self, key_hash: KeyHash, parts: int, *, by_position: bool) -> list[list[Spilled]]:
        """Return the entries of each part, in log order."""
        if parts == 1:
            return [self._written]

        def part_of(batch: pa.RecordBatch) -> np.ndarray:
            if by_position:
                return key_hash.assign_numbers(get_extra(batch, "position"), parts)
            return key_hash.assign_keys(batch.column("key"), parts)

        return split_by_part(self._spill, self._read_batches(self._written), part_of, parts)

    def _fold_part(
        self, part: Sequence[Spilled], fold: Fold, *, by_position: bool
    ) -> tuple[BufferedBatch, np.ndarray | None]:
        """Fold the entries of a part, a portion at a time."""
        records: BufferedBatch | None = None
        positions: np.ndarray | None = None
        for batch in map(join_batches, group_to_size(map(self._spill.read_copy, part), self._spill.budget.portion)):
            late = np.flatnonzero(get_extra(batch, "late"))
            first_late = int(late[0]) if len(late) else None
            entries = from_entry_batch(self._context, batch)
            places = get_extra(batch, "position") if by_position else None
            if records is not None:
                # The records so far come first.
                first_late = None if first_late is None else first_late + len(records)
                entries = BufferedBatch.concat([records, entries])
                places = None if positions is None or places is None else np.concatenate([positions, places])
            records, positions = fold(entries, places, first_late)
        assert records is not None
        return records, positions

    def _read_batches(self, spilled: Sequence[Spilled]) -> Iterator[pa.RecordBatch]:
        return map(self._spill.read_batch, spilled)


def split_by_part(
    spill: Spill,
    batches: Iterator[pa.RecordBatch],
    part_of: Callable[[pa.RecordBatch], np.ndarray],
    parts: int,
) -> list[list[Spilled]]:
    """Write the rows of batches again, split into parts in the same order; return the batches of each part.

    ``part_of``: returns the part of each row of a batch.
    """
    found: list[list[Spilled]] = [[] for _ in range(parts)]
    writer = spill.open_writer()
    for batch in batches:
        numbers = part_of(batch)
        # Stable, so that the rows of a part stay in order.
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(parts + 1))
        rows = batch.take(pa.array(order))
        for part in np.flatnonzero(np.diff(bounds)).tolist():
            start, stop = int(bounds[part]), int(bounds[part + 1])
            found[part].append(writer.add(rows.slice(start, stop - start)))
    writer.close()
    return found


def count_entry_bytes(entries: BufferedBatch) -> int:
    """Count the bytes of entries, not counting their rows."""
    return int(entries.keys.nbytes + entries.rows.nbytes + entries.codes.nbytes + entries.order.nbytes)


def to_entry_batch(entries: BufferedBatch, extra: Mapping[str, np.ndarray]) -> pa.RecordBatch:
    """Return entries and extra integer columns as one record batch."""
    columns = {"key": entries.keys, "row": pa.array(entries.rows), "code": pa.array(entries.codes)}
    columns["foreign"] = encode_foreign(entries.order.foreign, len(entries))
    columns |= {f"{_ORDER}{name}": column for name, column in entries.order.to_stored_columns().items()}
    columns |= {f"{_EXTRA}{name}": pa.array(values) for name, values in extra.items()}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def from_entry_batch(context: ArrowRecordContext, batch: pa.RecordBatch) -> BufferedBatch:
    """Return the entries of a batch made by ``to_entry_batch``; they share its memory."""
    names = batch.schema.names
    order = {name.removeprefix(_ORDER): batch.column(name) for name in names if name.startswith(_ORDER)}
    rows, codes = batch.column("row").to_numpy().view(), batch.column("code").to_numpy().view()
    ordering = OrderingColumn.from_stored_columns(order, decode_foreign(batch.column("foreign")))
    return BufferedBatch(context, batch.column("key"), rows, ordering, codes)


def get_extra(batch: pa.RecordBatch, name: str) -> np.ndarray:
    """Return one of the extra integer columns of a batch made by ``to_entry_batch``."""
    return np.asarray(batch.column(f"{_EXTRA}{name}").to_numpy())


def encode_foreign(values: np.ndarray | None, length: int) -> pa.Array:
    """Return a text for each ForeignValue of an object array, null for None."""
    if values is None:
        return pa.nulls(length, pa.string())
    return pa.array([None if value is None else json.dumps(_encode(value)) for value in values], pa.string())


def decode_foreign(texts: pa.Array) -> np.ndarray | None:
    """Return the object array that ``encode_foreign`` encoded; None if every text is null."""
    if texts.null_count == len(texts):
        return None
    values = np.full(len(texts), None, dtype=object)
    for i, text in enumerate(texts.to_pylist()):
        values[i] = None if text is None else _decode(json.loads(text))
    return values


_WRITE: Final[Mapping[type, Callable[[Any], Any]]] = {
    bool: bool,
    int: str,
    float: float.hex,
    str: lambda value: value.encode("utf-8", "surrogatepass").hex(),
    bytes: bytes.hex,
    Decimal: str,
    datetime.datetime: datetime.datetime.isoformat,
    datetime.date: datetime.date.isoformat,
    tuple: lambda value: [_encode(item) for item in value],
    ForeignValue: lambda value: [value.kind, _encode(value.value)],
}
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "bool": bool,
    "int": int,
    "float": float.fromhex,
    "str": lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
    "bytes": bytes.fromhex,
    "Decimal": Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "tuple": lambda items: tuple(_decode(item) for item in items),
    "ForeignValue": lambda pair: ForeignValue(pair[0], _decode(pair[1])),
}


def _encode(value: Any) -> Any:
    if value is None or value is DEFAULT_ORDERING:
        return ["null" if value is None else "default", None]
    kind = next(kind for kind in type(value).__mro__ if kind in _WRITE)  # an IntEnum is an int
    return [kind.__name__, _WRITE[kind](value)]


def _decode(pair: Any) -> Any:
    name, value = pair
    if name in ("null", "default"):
        return None if name == "null" else DEFAULT_ORDERING
    return _READ[name](value)
