"""BootstrapSources: finds the source files of a metadata-only bootstrap (Hudi ``HFileBootstrapIndex``).

Base files of the instant ``00000000000001`` have only meta columns. The bootstrap index names the file with the data of
each.

* The index is read once, when the first such file is looked up. One of its two forms is enough.
* A source must lie below the folder that ``hoodie.bootstrap.base.path`` names, and may not climb out of it. If the path
  of one side has no scheme, it takes the other side's. ``s3a`` and ``s3n`` are ``s3``.
* A base file without a source is an error, because its rows would have no data. Java reads nulls.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from threading import Lock

from hoodie_py.errors import CorruptFileError, FileMissingError, InvalidTableError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import BOOTSTRAP_BASE_PATH
from hoodie_py.formats.hfile.bootstrap_index import (
    FILE_IDS_PATH,
    PARTITIONS_PATH,
    IndexedSource,
    decode_file_value,
    decode_partition_value,
    make_file_key,
    make_partition_key,
    read_hfile,
)
from hoodie_py.formats.names import METADATA_BOOTSTRAP_INSTANT
from hoodie_py.reader.file_slice import BaseFile, SourceFile
from hoodie_py.table.bounded import read_bounded
from hoodie_storage.errors import PathError
from hoodie_storage.location import Place, parse_place

_SHOWN = 500


class BootstrapSources:
    """The source files of a table's bootstrap; safe to use from several threads."""

    def __init__(self, files: TableFiles, base_path: str | None) -> None:
        self._files = files
        self._base_path = base_path
        self._lock = Lock()
        self._entries: dict[bytes, bytes] | None = None
        self._by_partition = True
        self._partitions: dict[str, dict[str, IndexedSource]] = {}

    def add_source(self, base: BaseFile, partition: str) -> BaseFile:
        """Return a base file, with its source if a metadata-only bootstrap made it.

        Raises:
            CorruptFileError: the index is damaged.
            FileMissingError: there is no index.
            InvalidTableError: the index has no source of the file, or a source outside the bootstrapped folder.
            StorageError: the store refused.
        """
        if base.instant != METADATA_BOOTSTRAP_INSTANT:
            return base
        if self._base_path is None:
            raise InvalidTableError(
                "A base file is of a metadata-only bootstrap, but the table does not name the folder with its data.",
                path=base.path,
                hint=f"Set {BOOTSTRAP_BASE_PATH} in hoodie.properties to the folder that was bootstrapped.",
            )
        with self._lock:
            found = self._find(partition, base.file_id)
        if found is None:
            raise InvalidTableError(
                "The bootstrap index does not name the source file of a base file.",
                path=base.path,
                hint="Restore the index below .hoodie/.aux/.bootstrap, or bootstrap the table again.",
            )
        with locate_errors(base_file=base.path):
            return replace(base, source=locate_source(found, self._base_path))

    def _find(self, partition: str, file_id: str) -> IndexedSource | None:
        if self._entries is None:
            self._entries = dict(self._read_index())
        if not self._by_partition:
            value = self._entries.get(make_file_key(partition, file_id))
            with locate_errors(path=FILE_IDS_PATH):
                return None if value is None else decode_file_value(value)
        if partition not in self._partitions:
            value = self._entries.get(make_partition_key(partition))
            with locate_errors(path=PARTITIONS_PATH):
                self._partitions[partition] = {} if value is None else decode_partition_value(value)
        return self._partitions[partition].get(file_id)

    def _read_index(self) -> list[tuple[bytes, bytes]]:
        try:
            return self._read_entries(PARTITIONS_PATH)
        except FileMissingError:
            self._by_partition = False
        try:
            return self._read_entries(FILE_IDS_PATH)
        except FileMissingError as error:
            raise FileMissingError(
                "The bootstrap index is missing, which says where the data of the table's first base files is.",
                operation="read",
                path=PARTITIONS_PATH,
                hint="Restore the folder .hoodie/.aux/.bootstrap, or bootstrap the table again.",
            ) from error

    def _read_entries(self, path: str) -> list[tuple[bytes, bytes]]:
        data = read_bounded(self._files, path)
        with locate_errors(path=path):
            return read_hfile(data)


def locate_source(indexed: IndexedSource, base_path: str) -> SourceFile:
    """Return where a source file of the index lies in the bootstrapped folder.

    Raises:
        InvalidTableError: it lies elsewhere, or one of the paths is invalid.
        CorruptFileError: it is the folder itself.
    """
    folder, place = _parse_folder(base_path), _parse_place(indexed.uri)
    inside = place.find_inside(folder)
    if inside is None:
        raise InvalidTableError(
            "The bootstrap index names a source file outside the folder that was bootstrapped.",
            path=indexed.uri[:_SHOWN],
            hint=f"Sources must lie below {BOOTSTRAP_BASE_PATH} of hoodie.properties.",
        )
    if not inside:
        raise CorruptFileError("The bootstrap index names a folder, not a source file.", path=indexed.uri[:_SHOWN])
    scheme, host = place.scheme or folder.scheme, place.host or folder.host or ""
    root = "/" + "/".join(folder.segments)
    uri = root if scheme is None else f"{scheme}://{host}{root}"
    return SourceFile(uri, inside, indexed.size, indexed.uri)


def _parse_place(text: str) -> Place:
    try:
        return parse_place(text)
    except PathError as error:
        raise InvalidTableError(f"The table was bootstrapped from {error.reason}.") from None


@lru_cache(maxsize=16)  # the same for each file
def _parse_folder(text: str) -> Place:
    # The property has what somebody typed. Java's paths, such as those of the index, have no empty segments.
    return _parse_place(re.sub("(?<![:/])/+", "/", text))
