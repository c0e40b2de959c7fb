"""Writes a new base file from changed rows and from row groups of the old file that no record of the write touches.

An untouched row group is copied as bytes: it is neither decoded nor encoded. Only ``_hoodie_file_name`` is written
anew, the same value in every row. Rows keep their order. Copying is for files that this version of the package would
write in the same way: the schema in the footer, the program that wrote it and the codecs are equal. All others are
written anew, and so is a file with more than half of its rows in row groups that change.

Small row groups count as touched: otherwise a table that gets a new row with each write would get a row group, too.
"""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import IO, cast

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.indexes.measure import read_footer_ranges
from hoodie_py.formats.indexes.ranges import FileRanges
from hoodie_py.formats.names import FILE_NAME_FIELD, RECORD_KEY_FIELD
from hoodie_py.formats.parquet import DEFAULT_CODEC
from hoodie_py.formats.parquet.base_writer import WrittenFile
from hoodie_py.formats.parquet.bloom import DYNAMIC, BloomFilter
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY, make_one_comparable
from hoodie_py.formats.parquet.row_groups import CODEC_NUMBERS, GroupCopier, GroupSource, make_constant_file
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.base.mapped_file import FileView
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.writer.handles.data_file import CommitFacts, MeasuringWriter, start_measuring

_MOST_SHARE = 0.5  # of the rows, in row groups that change
_MOST_KEYS = 0.125  # for each row: more will hardly leave row groups untouched
_SMALL = 0.5  # of the rows of the middle one of the row groups
_KEY_ROWS = 1 << 17
_SEGMENT_BYTES = 64 << 20
_KEY = pa.schema([pa.field(RECORD_KEY_FIELD, pa.string())])
_MIN, _MAX = MIN_KEY.encode(), MAX_KEY.encode()


def open_spliced_file(
    facts: CommitFacts,
    sink: IO[bytes],
    base: OpenBaseFile,
    old: BaseFile,
    keys: pa.Array,
    bloom: BloomFilter | None,
    file_name: str,
) -> SplicedFile | None:
    """Open the writer of a file that replaces ``base`` (the file ``old``); None if row groups cannot be copied, or few.

    ``keys``: strings, of the records that may change rows. ``bloom``: the filter of the new file.

    Raises:
        CorruptFileError: the base file cannot be decoded.
        StorageError: the base file cannot be read.
    """
    names = facts.schema.arrow.names
    if not isinstance(base, BaseFileReader) or base.retyped or facts.schema.empty:
        return None
    if RECORD_KEY_FIELD not in names or FILE_NAME_FIELD not in names or not {_MIN, _MAX} <= base.key_facts.keys():
        return None
    rows = base.group_rows
    if not rows or len(keys) > _MOST_KEYS * sum(rows):
        return None
    touched = _find_touched_groups(base, rows, keys)
    if sum(rows[group] for group in touched) > _MOST_SHARE * sum(rows):
        return None
    template = _make_template(facts)
    try:
        file = facts.files.open_file(old.path, old.size or None)
        source = GroupSource(cast("IO[bytes]", file), file.size)
    except CorruptFileError:  # more values than are allowed
        return None
    file_name_at = source.find_column(FILE_NAME_FIELD)
    same = source.schema == template.schema and source.created_by == template.created_by and source.is_plain()
    if file_name_at is None or not same or len(source.groups) != len(rows):
        return None
    if source.codecs != {CODEC_NUMBERS[_get_codec(facts)]}:
        return None
    return SplicedFile(facts, sink, source, template, TouchedGroups(base, touched), (file_name_at, file_name), bloom)


class TouchedGroups(FileView):
    """The row groups of a base file whose rows may change.

    ``current`` is the row group of the batch that was read last; after the last batch it is the number of row groups.
    """

    def __init__(self, inner: OpenBaseFile, touched: Collection[int]) -> None:
        super().__init__(inner)
        self.whole = inner
        self.rows = inner.group_rows  # of all row groups
        self.touched = sorted(touched)
        self.current = 0

    @property
    def num_rows(self) -> int:
        """The number of rows in these groups."""
        return sum(self.group_rows)

    @property
    def group_rows(self) -> list[int]:
        """The number of rows of each of these groups."""
        return [self.rows[group] for group in self.touched]

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Collection[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows in file order; arguments and errors as for ``OpenBaseFile``."""
        for group in self.touched if row_groups is None else [self.touched[each] for each in row_groups]:
            self.current = group
            yield from self._inner.read_batches(schema, batch_rows, [group], coded=coded, column_threads=column_threads)
        self.current = len(self.rows)


class SplicedFile:
    """Writes a base file from batches, with row groups of the old file between them.

    Batches come while ``changing`` is read; the row groups before each batch's own are copied first. ``ranges`` is set
    as by ``MeasuringWriter``.
    """

    def __init__(
        self,
        facts: CommitFacts,
        sink: IO[bytes],
        source: GroupSource,
        template: GroupSource,
        changing: TouchedGroups,
        file_name: tuple[int, str],
        bloom: BloomFilter | None,
    ) -> None:
        self.changing = changing
        self.ranges: FileRanges | None = None
        self._facts = facts
        self._source = source
        self._template = template
        self._column, self._name = file_name
        self._bloom = bloom
        self._copier = GroupCopier(sink)
        self._next = 0
        self._segment: tuple[io.BytesIO, MeasuringWriter] | None = None
        self._constants: dict[int, bytes] = {}
        self._bounds = [(source.facts[_MIN], source.facts[_MAX])]
        measured = start_measuring(facts.indexed, facts.schema.avro)
        self._floats = None if measured is None else measured.select_floats()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; errors as for ``BaseFileWriter``, and of the copied row groups CorruptFileError, StorageError."""
        self._copy_until(self.changing.current)
        if self._segment is None:
            buffer = io.BytesIO()
            # Row groups are cut by the old file's rows, not by bytes: a row group that changes stays one.
            rows = max(self.changing.rows)
            self._segment = buffer, self._facts.open_base_writer(buffer, part_rows=rows)
        self._segment[1].write(batch)
        if self._floats is not None:
            self._floats.add(batch)
        if self._segment[1].size_so_far > _SEGMENT_BYTES:
            self._end_segment()

    def close(self) -> WrittenFile:
        """Copy the remaining row groups and write the footer; errors as for ``write``."""
        self._copy_until(len(self.changing.rows))
        self._end_segment()
        facts = self._template.facts | {
            _MIN: min((low for low, _ in self._bounds), key=make_one_comparable),
            _MAX: max((high for _, high in self._bounds), key=make_one_comparable),
        }
        if self._bloom is not None:
            facts[BLOOM_KEY.encode()] = self._bloom.to_text().encode()
            if self._bloom.type_code == DYNAMIC:
                facts[BLOOM_TYPE_KEY.encode()] = DYNAMIC.encode()
        metadata = self._copier.finish(self._template, facts)
        if self._facts.indexed is not None and self._floats is not None:
            found = read_footer_ranges(metadata, self._facts.indexed.names, self._facts.indexed.version)
            floats = {each.column: each for each in self._floats.finish()}
            self.ranges = None if found is None else found.complete(floats)
        return WrittenFile(self._copier.rows, self._copier.size, metadata)

    def _copy_until(self, group: int) -> None:
        """Copy the untouched row groups before a row group."""
        for number in range(self._next, group):
            if number not in self.changing.touched:
                self._end_segment()
                rows = self.changing.rows[number]
                if rows not in self._constants:
                    self._constants[rows] = make_constant_file(
                        FILE_NAME_FIELD, self._name, rows, _get_codec(self._facts)
                    )
                self._copier.append(self._source, number, {self._column: self._constants[rows]})
                self._measure_floats(number)
        self._next = max(self._next, group)

    def _measure_floats(self, group: int) -> None:
        columns = () if self._floats is None else self._floats.finish()
        if self._floats is None or not columns:
            return
        base = self.changing.whole
        names = dict.fromkeys(each.column.partition(".")[0] for each in columns)
        schema = pa.schema([base.schema.field(name) for name in names if name in base.columns])
        for batch in base.read_batches(schema, _KEY_ROWS, [group]):
            self._floats.add(batch)

    def _end_segment(self) -> None:
        """Append the row groups of the rows that were written since the last copied one."""
        if self._segment is None:
            return
        (buffer, writer), self._segment = self._segment, None
        writer.close()
        made = GroupSource.of_bytes(buffer.getvalue())
        for number in range(len(made.groups)):
            self._copier.append(made, number)
        if _MIN in made.facts:
            self._bounds.append((made.facts[_MIN], made.facts[_MAX]))


def _find_touched_groups(base: BaseFileReader, rows: Sequence[int], keys: pa.Array) -> list[int]:
    """Find the row groups that hold one of the keys, or are small; more than ``_MOST_SHARE`` need not be complete.

    ``rows``: the number of rows of each row group.
    """
    middle = sorted(rows)[len(rows) // 2]
    touched = {group for group, count in enumerate(rows) if count < _SMALL * middle}
    bounds = _read_key_bounds(base)
    ordered = sorted(keys.cast(pa.binary()).to_pylist())
    for group in set(range(len(rows))) - touched:
        if sum(rows[each] for each in touched) > _MOST_SHARE * sum(rows):
            break
        low, high = bounds.get(group, (b"", None))
        if high is not None and bisect_left(ordered, low) >= bisect_right(ordered, high):
            continue
        batches = base.read_batches(_KEY, _KEY_ROWS, [group])
        if any(pc.any(pc.is_in(batch.column(0), keys)).as_py() for batch in batches):
            touched.add(group)
    return sorted(touched)


def _read_key_bounds(base: BaseFileReader) -> dict[int, tuple[bytes, bytes]]:
    """Read the least and greatest key of row groups from the footer, where it has them."""
    footer = base.footer
    if footer is None:
        return {}
    at = [footer.schema.column(each).path for each in range(footer.num_columns)].index(RECORD_KEY_FIELD)
    found = {}
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(at).statistics
        if statistics is not None and statistics.has_min_max and isinstance(statistics.min, str):
            found[group] = statistics.min.encode(), statistics.max.encode()
    return found


def _make_template(facts: CommitFacts) -> GroupSource:
    """Return a file without rows, whose footer says what the footers of the commit's files have in common."""
    buffer = io.BytesIO()
    facts.open_base_writer(buffer, part_rows=1).close()
    return GroupSource.of_bytes(buffer.getvalue())


def _get_codec(facts: CommitFacts) -> str:
    return facts.file.codec or DEFAULT_CODEC
