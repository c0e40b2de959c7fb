"""FilteredRows: reads the rows of one base file that pass a filter, without the log.

Of each row group the filter's columns are read first. The other columns are read only if a row passes, up to the last
such row, and only passing rows are decoded from dictionaries. Most of the time of a read is decoding, so a filter that
few row groups pass costs little more than its own columns. A remote file is read in one go, as the second look at a row
group would be another request.

The filter sees the columns with their final values: after changes of the schema, with values of the partition path
filled in. So it must be the filter of a slice without log files, whose rows change values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import filter_rows, from_numpy, join_batches, to_booleans
from hoodie_py.errors import CorruptFileError
from hoodie_py.reader.base.base_file import Decoder
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.read_info import ReadStats

_MOST_HELD = 32 << 20  # bytes of a row group's passing rows; if they have more, the filter's columns are read again


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows of a base file are wanted.

    Attributes:
        columns: the columns that the filter needs.
        choose_row_groups: returns the row groups that may hold passing rows, rising.
        test: returns a boolean for each row of a batch; true keeps the row, false and null drop it.
    """

    columns: frozenset[str]
    choose_row_groups: Callable[[OpenBaseFile], Sequence[int]]
    test: Callable[[pa.RecordBatch], pa.BooleanArray]


class Output:
    """Makes the columns of a result from stored columns: decodes dictionaries, adds values of the partition path."""

    def __init__(self, fields: Iterable[pa.Field], constants: Mapping[str, Any], decoder: Decoder) -> None:
        self.schema = pa.schema(list(fields))
        self.stored = pa.schema([field for field in self.schema if field.name not in constants])
        self._fields = [(field, field.name not in constants, constants.get(field.name)) for field in self.schema]
        self._decoder = decoder

    def make(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of ``schema`` for rows with the columns of ``stored``, and perhaps more."""
        if batch.schema.names != self.stored.names:
            batch = batch.select(self.stored.names)
        if not self.schema.names:
            return batch
        arrays: list[Any] = []
        stored = iter(batch.columns)
        for field, is_stored, value in self._fields:
            if is_stored:
                arrays.append(self._decoder.decode(field, next(stored)))
            else:
                arrays.append(self._decoder.repeat_value(field, value, batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class FilteredRows:
    """The passing rows of one open base file.

    ``read`` yields batches of some stored columns of some row groups, in file order. ``wanted`` are the columns of the
    result. ``at_once``: read all columns of a row group in one go.
    """

    def __init__(
        self,
        base: OpenBaseFile,
        row_filter: RowFilter,
        read: Callable[[pa.Schema, Sequence[int]], Iterator[pa.RecordBatch]],
        wanted: Output,
        make_output: Callable[[Iterable[pa.Field]], Output],
        *,
        at_once: bool,
    ) -> None:
        self._base = base
        self._filter = row_filter
        self._read = read
        self._wanted = wanted
        tested = row_filter.columns or wanted.schema.names  # a filter without columns still needs rows
        self._tested = make_output(field for field in wanted.schema if field.name in tested)
        self._others = make_output(field for field in wanted.schema if field.name not in tested)
        self._at_once = at_once or not self._others.schema.names

    def read_batches(self, stats: ReadStats) -> Iterator[pa.RecordBatch]:
        """Yield the passing rows; ``stats`` counts the rows that were tested.

        Raises:
            CorruptFileError: pages cannot be decoded, or columns differ in length.
            InvalidQueryError: the filter cannot be computed for a row.
        """
        groups = self._filter.choose_row_groups(self._base)
        if not groups:  # in most files, where a filter asks for a key
            return
        if self._at_once:
            # Unlike a loop's variable, map keeps no batch while the next one is read.
            yield from map(partial(self._filter_batch, stats), self._read(self._wanted.stored, groups))
            return
        lengths = self._base.group_rows
        for group in groups:
            stats.base_rows += lengths[group]
            yield from self._read_group(group, lengths[group])

    def _filter_batch(self, stats: ReadStats, batch: pa.RecordBatch) -> pa.RecordBatch:
        stats.base_rows += batch.num_rows
        tested = self._tested.make(batch)
        mask = from_numpy(to_booleans(self._filter.test(tested)))
        if self._others.schema.names:
            return self._wanted.make(filter_rows(batch, mask))
        return filter_rows(tested, mask)

    def _read_group(self, group: int, length: int) -> Iterator[pa.RecordBatch]:
        passing, found = self._find_rows(group, length)
        count = int(np.count_nonzero(passing))
        if not count:
            return
        done = taken = 0
        for batch in self._read((self._wanted if found is None else self._others).stored, [group]):
            mask = passing[done : done + batch.num_rows]
            if len(mask) < batch.num_rows:
                break
            done += batch.num_rows
            kept = filter_rows(batch, from_numpy(mask))
            del batch  # before the next one is read
            if not kept.num_rows:
                continue
            if found is None:
                yield self._wanted.make(kept)
            else:
                yield self._join(found.slice(taken, kept.num_rows), self._others.make(kept))
            taken += kept.num_rows
            if taken == count:
                return
        self._refuse_lengths()

    def _find_rows(self, group: int, length: int) -> tuple[npt.NDArray[np.bool_], pa.RecordBatch | None]:
        """Return which rows of a group pass, and the filter's columns of these; None if they have many bytes."""
        passing = np.zeros(length, np.bool_)
        found: list[pa.RecordBatch] | None = []
        done = size = 0
        for batch in self._read(self._tested.stored, [group]):
            tested = self._tested.make(batch)
            mask = to_booleans(self._filter.test(tested))
            if done + len(mask) > length:
                self._refuse_lengths()
            passing[done : done + len(mask)] = mask
            done += len(mask)
            if found is not None and mask.any():
                found.append(filter_rows(tested, from_numpy(mask)))
                size += found[-1].nbytes
                if size > _MOST_HELD:
                    found = None
            del batch, tested  # before the next ones are read
        if done < length:
            self._refuse_lengths()
        return passing, join_batches(found) if found else None

    def _join(self, tested: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
        names = self._tested.schema.names
        columns = [(tested if name in names else others).column(name) for name in self._wanted.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._wanted.schema)

    def _refuse_lengths(self) -> NoReturn:
        raise CorruptFileError("Columns of a row group differ in length.", path=self._base.path)
