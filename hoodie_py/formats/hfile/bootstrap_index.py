"""The index of a metadata-only bootstrap: which source file contains the data columns of a base file.

Hudi keeps it twice, as HFiles of one well-known name (Hudi HFileBootstrapIndex, HFileBootstrapIndexReader):

    folder         key                        value
    .partitions    part=<path>                HoodieBootstrapPartitionMetadata: the source of each file id
    .fileids       part=<path>;fileid=<id>    HoodieBootstrapFilePartitionInfo: one source

Each value is an Avro container file of one record. A source is a HoodieFileStatus: a URI, which is not percent-encoded,
and the size of the file in bytes when it was bootstrapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.container import read_single
from hoodie_py.formats.hfile.data_block import Entry
from hoodie_py.formats.hfile.reader import HFile
from hoodie_py.formats.names import METADATA_BOOTSTRAP_INSTANT

_FOLDER = ".hoodie/.aux/.bootstrap"
_NAME = f"00000000-0000-0000-0000-000000000000-0_1-0-1_{METADATA_BOOTSTRAP_INSTANT}.hfile"
PARTITIONS_PATH = f"{_FOLDER}/.partitions/{_NAME}"
FILE_IDS_PATH = f"{_FOLDER}/.fileids/{_NAME}"


@dataclass(frozen=True, slots=True)
class IndexedSource:
    """A source file in the index; ``size`` is None if it is not known."""

    uri: str
    size: int | None


def make_partition_key(partition: str) -> bytes:
    """Return the key of a partition's sources."""
    return f"part={partition}".encode()


def make_file_key(partition: str, file_id: str) -> bytes:
    """Return the key of one file group's source."""
    return f"part={partition};fileid={file_id}".encode()


def decode_partition_value(value: bytes) -> dict[str, IndexedSource]:
    """Return the sources of a partition by file id. Raises CorruptFileError if the value is damaged."""
    sources = read_single(value, "HoodieBootstrapPartitionMetadata").get("fileIdToBootstrapFile")
    if not isinstance(sources, Mapping):
        raise CorruptFileError("A partition of the bootstrap index has no source files.")
    return {file_id: _read_status(status) for file_id, status in sources.items()}


def decode_file_value(value: bytes) -> IndexedSource:
    """Return the source of one file group. Raises CorruptFileError if the value is damaged."""
    return _read_status(read_single(value, "HoodieBootstrapFilePartitionInfo").get("bootstrapFileStatus"))


def _read_status(status: Any) -> IndexedSource:
    path = status.get("path") if isinstance(status, Mapping) else None
    uri = path.get("uri") if isinstance(path, Mapping) else None
    if not isinstance(uri, str) or not uri:
        raise CorruptFileError("A source file of the bootstrap index has no path.")
    size = status.get("length")
    if size is not None and not (isinstance(size, int) and size >= 0):
        raise CorruptFileError("A source file of the bootstrap index has no valid size.")
    return IndexedSource(uri, size)


def read_hfile(data: bytes | memoryview) -> list[Entry]:
    """Return all entries of an HFile, in key order. Raises as ``HFile.iterate_entries``."""
    return list(HFile.from_bytes(data).iterate_entries())
