"""The rows of a table's file slices, as indexes over keys need them: the record key, and the value of one column.

A slice can be read with the log blocks of an instant that has not completed yet: as readers will see it once the
instant completes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.fields import find_top_level_name, read_field_values
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.table.snapshot import Snapshot

KEY = "key"
VALUE = "value"


class SliceRows:
    """Reads keys, and the values of one column, from slices of a table.

    Args:
        snapshot: the table.
        options: the caller's options, by Hudi's keys.
        column: the column beside the keys; fields of structs have a dotted name. None: only keys.
        instant: a pending instant whose log blocks count, too.
        merger: the table's own merger, if the caller gave it.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        options: Mapping[str, str],
        column: str | None = None,
        instant: str | None = None,
        merger: Merger | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._instant = instant
        self._merger = merger
        self._options = ReadOptions(options=options)
        config = snapshot.config
        self._keys = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)
        self._column = column

    def read(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows of a slice: the column ``key``, and ``value`` if a column is wanted.

        Raises:
            CorruptFileError, FileMissingError: a file is damaged or gone.
            MergeError: logs have to be read, and the table's merger is missing.
            StorageError: a file cannot be read.
        """
        info = self._describe(file_slice)
        names = [*self._keys.columns, *(() if self._column is None else (self._column,))]
        columns = list(dict.fromkeys(find_top_level_name(info.schema, name) for name in names))
        for batch in FileGroupReader(
            file_slice, info, columns, merger=self._merger, options=self._options
        ).to_batches():
            keys = self._keys.read_keys(batch)
            if self._column is None:
                yield pa.RecordBatch.from_arrays([keys], [KEY])
            else:
                yield pa.RecordBatch.from_arrays([keys, read_field_values(batch, self._column)], [KEY, VALUE])

    def read_table(self, file_slice: FileSlice | None, keys: pa.Array | None = None) -> pa.Table:
        """Return the merged rows of a slice, restricted to ``keys`` if given; no rows for None. Errors as ``read``."""
        batches = [] if file_slice is None else list(self._select(file_slice, keys))
        if batches:
            return pa.Table.from_batches(batches)
        fields = [pa.field(KEY, pa.string())]
        if self._column is not None:
            fields.append(pa.field(VALUE, self.find_value_type()))
        return pa.schema(fields).empty_table()

    def read_log_keys(self, log: FileSlice) -> pa.Array:
        """Return the distinct keys of all rows and deletes in log files. Errors as ``read``."""
        with closing(LogReader(log, self._describe(log), [], self._merger, self._options, ReadStats())) as reader:
            chunks = [block.entries.keys.cast(pa.string()) for block in reader.read_blocks()]
        return pc.unique(pa.chunked_array(chunks, pa.string()))

    def find_value_type(self) -> pa.DataType:
        """Return the type of the column ``value``."""
        batch = self._snapshot.schema.arrow.empty_table().to_batches()
        empty = batch[0] if batch else pa.RecordBatch.from_pylist([], self._snapshot.schema.arrow)
        return read_field_values(empty, self._column or "").type

    def _select(self, file_slice: FileSlice, keys: pa.Array | None) -> Iterator[pa.RecordBatch]:
        for batch in self.read(file_slice):
            found = batch if keys is None else batch.filter(pc.is_in(batch.column(0), keys))
            if found.num_rows:
                yield found

    def _describe(self, file_slice: FileSlice) -> ReadInfo:
        """Return the facts for reading, with rules by which the pending instant's blocks count, too."""
        info = self._snapshot.read_info(file_slice)
        if self._instant is None:
            return info
        rules = info.rules
        completed = None if rules.completed is None else rules.completed | {self._instant}
        mine = replace(rules, query_instant=None, completed=completed, inflight=rules.inflight - {self._instant})
        return replace(info, rules=mine)
