"""OpenBaseFile: the interface of every base file reader, and the choice of the reader by file extension.

A table's base file format says how new files are written; a file's extension says what the file is (Hudi
``HoodieFileReaderFactory``, ``FSUtils.getFileExtension``). So tables with several formats need nothing more. Readers of
formats other than Parquet are imported when a file needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.read_info import WantedKeys

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class OpenBaseFile(Protocol):
    """One open base file.

    Attributes:
        path: for errors.
        columns: the stored top-level columns.
    """

    path: str
    columns: frozenset[str]

    @property
    def retyped(self) -> frozenset[str]:
        """Columns of a wrong type, whose statistics in ``footer`` cannot be used."""
        ...

    @property
    def num_rows(self) -> int:
        """The number of rows, without reading them."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The stored columns, with the types that batches have."""
        ...

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of rows of each part of the file that can be read alone, in file order: Parquet's row groups."""
        ...

    @property
    def footer(self) -> pq.FileMetaData | None:
        """Sizes and statistics of the columns in each group; None for formats without them."""
        ...

    @property
    def key_facts(self) -> Mapping[bytes, bytes]:
        """The file's facts of its record keys, if any, by the names in ``key_range``."""
        ...

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order with the schema's columns; columns that the file lacks are null.

        ``row_groups``: indexes into ``group_rows``, rising; None for all. ``coded``: columns that may come as
        dictionaries, to be decoded by ``Decoder``; if there are any, fields of batches may also stay non-null.
        ``column_threads``: allow Arrow's threads.

        Raises:
            CorruptFileError: the file cannot be decoded.
            UnsupportedFeatureError: a column's stored type does not widen to the wanted type.
        """
        ...


def open_by_extension(
    files: TableFiles,
    base_file: BaseFile,
    times: pa.Schema | None = None,
    keys: WantedKeys | None = None,
    *,
    directory: str | None = None,
) -> OpenBaseFile:
    """Open a file of any format that needs no other file; arguments as for ``BaseFileReader``.

    ``keys``: the only record keys wanted. Formats with an index of keys read no others; other formats may.
    ``directory``: for temporary files, which some readers need; None for the system's.

    Raises:
        CorruptFileError: the file is damaged.
        FileMissingError: the file is missing.
        UnsupportedFeatureError: there is no reader for the format.
    """
    extension = f".{base_file.name.rpartition('.')[2]}"
    if extension == ".parquet":
        return BaseFileReader(files, base_file, times)
    if extension == ".hfile":
        from hoodie_py.reader.base.hfile_file import HFileReader

        return HFileReader(files, base_file, times, keys)
    if extension == ".orc":
        from hoodie_py.reader.base.orc_file import OrcFileReader

        return OrcFileReader(files, base_file, times)
    if extension == ".lance":
        from hoodie_py.reader.base.lance.lance_file import LanceFileReader

        return LanceFileReader(files, base_file, times, directory)
    raise UnsupportedFeatureError(f"Base files in the {extension[1:]} format are not supported.", path=base_file.path)
