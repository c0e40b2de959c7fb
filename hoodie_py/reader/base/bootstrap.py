"""BootstrapFileReader: reads a base file of a metadata-only bootstrap together with its source file.

Such a base file is a skeleton: it holds the meta columns. The source, a file outside the table, holds the data. Row n
of the skeleton belongs to row n of the source (Hudi ``HoodieFileGroupReader.makeBootstrapBaseFileIterator``,
``HoodieReaderContext.mergeBootstrapReaders``). The rules:

* Meta columns come from the skeleton, whatever the source has. All others come from the source.
* Each file is read only for the wanted columns that it holds, and not at all if there are none.
* Row groups are those of the source, because most filters are on data. The skeleton's rows are found by their number.
* Both files must have as many rows. A source whose size differs from the bootstrap index was changed since, and may
  have other rows: that is an error, too.
* The source lies in the kind of store that the table lies in, or in one that the user allows: in ``options.read``, or
  by the environment variable ``HOODIE_PY_BOOTSTRAP_STORES``, which holds for the whole process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import META_FIELDS_WITH_OPERATION, METADATA_BOOTSTRAP_INSTANT
from hoodie_py.options.read import BOOTSTRAP_SOURCE, BOOTSTRAP_STORES, SPILL_PATH
from hoodie_py.reader.base.file_formats import OpenBaseFile, open_by_extension
from hoodie_py.reader.file_slice import BaseFile, InstantRange, SourceFile
from hoodie_py.reader.read_info import ReadInfo, ReadOptions

if TYPE_CHECKING:
    import pyarrow.parquet as pq

VARIABLE = "HOODIE_PY_BOOTSTRAP_STORES"

_ALIASES = {"s3a": "s3", "s3n": "s3", "local": "file"}
_META = frozenset(META_FIELDS_WITH_OPERATION)


def open_base_file(
    info: ReadInfo, base_file: BaseFile, options: ReadOptions, instants: InstantRange | None = None
) -> OpenBaseFile:
    """Open a base file of any kind; with ``instants`` batches have only the rows of these commits.

    Raises:
        CorruptFileError: a file is damaged, or a bootstrap's two files do not belong together.
        FileMissingError: a file is missing.
        InvalidTableError: a base file of a metadata-only bootstrap comes without its source.
        UnsupportedFeatureError: a source in another kind of store, a format without a reader, or a source without a
            partition column that it needs.
    """
    opened = _open_stored(info, base_file, options)
    if instants is not None:
        from hoodie_py.reader.base.mapped_file import CommitsView

        opened = CommitsView(opened, instants)
    if info.mappings is None:
        return opened
    from hoodie_py.reader.base.mapped_file import MappedBaseFile
    from hoodie_py.reader.schema_evolution.by_id import ColumnMapper

    return MappedBaseFile(opened, ColumnMapper(info.mappings.find(base_file.instant), info.schema), info.schema)


def _open_stored(info: ReadInfo, base_file: BaseFile, options: ReadOptions) -> OpenBaseFile:
    """Open a base file with its columns as they are stored."""
    source = base_file.source
    if source is not None:
        folder = open_source_folder(info.files, source, options)
        skeleton = open_by_extension(info.files, base_file, info.file_times)
        uri = f"{folder.uri.rstrip('/')}/{source.path}"
        reader = BootstrapFileReader(skeleton, _open_source(folder, source, uri, info.file_times), uri)
        check_filled(info, reader)
        return reader
    if base_file.instant == METADATA_BOOTSTRAP_INSTANT:
        raise InvalidTableError(
            "A base file of a metadata-only bootstrap has no source file.",
            path=base_file.path,
            hint="Take file slices from the table; a scan of it says why it finds no source.",
        )
    directories = SPILL_PATH.read(options.options)
    return open_by_extension(
        info.files, base_file, info.file_times, info.keys, directory=directories[0] if directories else None
    )


def check_filled(info: ReadInfo, reader: BootstrapFileReader) -> None:
    """Refuse to rewrite rows that would lose the value of a partition column.

    Raises:
        UnsupportedFeatureError: the source lacks the column, and the partition path gives no value of its type.
    """
    lost = sorted(info.unfilled - reader.columns)
    if lost:
        raise UnsupportedFeatureError(
            "Rewriting a bootstrapped file whose source lacks a partition column that its path does not give.",
            path=reader.path,
            column=lost[0],
        )


def open_source_folder(files: TableFiles, source: SourceFile, options: ReadOptions) -> TableFiles:
    """Return the files of the bootstrapped folder, or of the folder that the user names instead.

    Raises:
        StorageError: the user's URI is not valid.
        UnsupportedFeatureError: the folder is in another kind of store than the table, and the user does not name it.
    """
    named = BOOTSTRAP_SOURCE.find_text(options.options)
    if named is not None:
        return files.open_other(named)
    if not files.is_same_kind(source.folder):
        kind = files.find_kind(source.folder)
        if kind not in list_allowed_stores(options.options):
            raise UnsupportedFeatureError(
                "The source files of this bootstrapped table are in another kind of store than the table.",
                path=source.folder,
                hint=f"If you trust the table, name their folder in {BOOTSTRAP_SOURCE}, or allow {kind!r} in "
                f"{BOOTSTRAP_STORES} or, for a whole process, in the environment variable {VARIABLE}.",
            )
    return files.open_other(source.folder)


def list_allowed_stores(options: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the kinds of store in which sources are allowed: by the option, else by the environment variable."""
    names = BOOTSTRAP_STORES.read(options) or BOOTSTRAP_STORES.read({BOOTSTRAP_STORES: environment.get(VARIABLE, "")})
    return frozenset(_ALIASES.get(name.lower(), name.lower()) for name in names)


class BootstrapFileReader:
    """One open skeleton file and its source; ``source_uri`` is for errors.

    Raises:
        CorruptFileError: the files have different numbers of rows.
    """

    def __init__(self, skeleton: OpenBaseFile, source: OpenBaseFile, source_uri: str) -> None:
        self.path = skeleton.path
        self._skeleton = skeleton
        self._source = source
        self._source_uri = source_uri
        if source.num_rows != skeleton.num_rows:
            raise CorruptFileError(
                f"A bootstrapped base file has {skeleton.num_rows} rows, and its source file {source.num_rows}.",
                path=self.path,
                source=self._source_uri,
                hint="Restore the source file as it was, or bootstrap the table again.",
            )
        self._meta = skeleton.columns & _META
        self.columns = self._meta | (source.columns - _META)
        self.retyped = source.retyped | _META  # statistics are the source's, meta columns the skeleton's

    @property
    def num_rows(self) -> int:
        """The number of rows, from the footers."""
        return self._source.num_rows

    @property
    def schema(self) -> pa.Schema:
        """The stored columns of both files, with the types that batches have."""
        meta = [field for field in self._skeleton.schema if field.name in self._meta]
        return pa.schema([*meta, *(field for field in self._source.schema if field.name not in _META)])

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of rows of each row group of the source."""
        return self._source.group_rows

    @property
    def footer(self) -> pq.FileMetaData | None:
        """The source's footer, with sizes and statistics of its row groups."""
        return self._source.footer

    @property
    def key_facts(self) -> Mapping[bytes, bytes]:
        """The facts of the record keys in the skeleton."""
        return self._skeleton.key_facts

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows of both files side by side; arguments and errors as for ``OpenBaseFile``."""
        meta = pa.schema([field for field in schema if field.name in _META])
        data = pa.schema([field for field in schema if field.name not in _META])
        source = partial(
            self._source.read_batches, data, batch_rows, row_groups, coded=coded, column_threads=column_threads
        )
        if not len(meta):
            return self._read_source(source)
        skeleton = self._read_skeleton(meta, batch_rows, row_groups, coded, column_threads)
        if not len(data):
            return skeleton
        return self._pair_batches(skeleton, self._read_source(source), schema.names)

    def _read_source(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """Yield the source's batches; errors name its URI."""
        try:
            yield from read()
        except HoodieError as error:
            error.where["path"] = self._source_uri
            raise

    def _read_skeleton(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None,
        coded: Collection[str],
        threads: bool,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the meta columns of all rows, or of the rows in some row groups of the source."""
        read = partial(self._skeleton.read_batches, schema, batch_rows, coded=coded, column_threads=threads)
        if row_groups is None:
            yield from read()
            return
        sizes = self.group_rows
        ends = list(accumulate(sizes))
        wanted = [(ends[group] - sizes[group], ends[group]) for group in row_groups]
        start = 0
        for group, end in enumerate(accumulate(self._skeleton.group_rows)):
            inside = [(first, last) for first, last in wanted if first < end and last > start]
            if inside:
                at = start
                for batch in read([group]):
                    for first, last in inside:
                        low, high = max(first, at), min(last, at + batch.num_rows)
                        if low < high:
                            yield batch.slice(low - at, high - low)
                    at += batch.num_rows
            start = end

    def _pair_batches(
        self, skeleton: Iterator[pa.RecordBatch], source: Iterator[pa.RecordBatch], names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows with the columns of both files; a batch ends wherever a batch of either file ends."""
        left, right = next(skeleton, None), next(source, None)
        while left is not None and right is not None:
            rows = min(left.num_rows, right.num_rows)
            yield _join(left.slice(0, rows), right.slice(0, rows), names)
            left = left.slice(rows) if rows < left.num_rows else next(skeleton, None)
            right = right.slice(rows) if rows < right.num_rows else next(source, None)
        if left is not None or right is not None:
            raise CorruptFileError(
                "A bootstrapped base file and its source file do not have the same rows.",
                path=self.path,
                source=self._source_uri,
            )


def _open_source(folder: TableFiles, source: SourceFile, uri: str, times: pa.Schema | None) -> OpenBaseFile:
    try:
        size = folder.stat(source.path).size
        if source.size is not None and size != source.size:
            raise CorruptFileError(
                f"The source file of a bootstrapped table had {source.size} bytes, now it has {size}: its rows may be "
                "others than those that were bootstrapped.",
                path=uri,
                hint="Restore it as it was, or bootstrap the table again.",
            )
        return open_by_extension(folder, BaseFile(source.path, size, "", ""), times)
    except FileMissingError as error:
        raise FileMissingError(
            "A source file of a bootstrapped table is gone, and it alone had the data of these rows.",
            operation="read",
            path=uri,
            hint=f"Restore it. If the folder was moved, name the new place in the option {BOOTSTRAP_SOURCE}.",
        ) from error
    except (CorruptFileError, UnsupportedFeatureError) as error:
        error.where["path"] = uri
        raise


def _join(left: pa.RecordBatch, right: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    columns = dict(zip([*left.schema, *right.schema], [*left.columns, *right.columns], strict=True))
    by_name = {field.name: (field, array) for field, array in columns.items()}
    fields, arrays = zip(*(by_name[name] for name in names), strict=True)
    return pa.RecordBatch.from_arrays(list(arrays), schema=pa.schema(fields))
