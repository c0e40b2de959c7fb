"""Encodes records of the ``files`` partition of the metadata table (Hudi HoodieMetadataPayload, HoodieMetadataRecord).

    key of the HFile entry    value
    __all_partitions__        type 1: each partition, size 0
    partition path            type 2: each file's size, or that the file is deleted
    "."                       the same, for a table without partitions

The value is an Avro record of the schema of the metadata table's blocks, without a header. ``key`` is "", because the
HFile has it. All fields but the type and the map are null. Readers merge the maps of all blocks, so a file that a
record does not name stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import vet_schema
from hoodie_py.formats.avro.container_writer import encode_record
from hoodie_py.formats.hfile.data_block import Entry
from hoodie_py.formats.names import check_file_name, check_inside

ALL_PARTITIONS = "__all_partitions__"
NO_PARTITION = "."
FILES_PARTITION = "files"
FILES_FILE_ID = "files-0000-0"

_PARTITIONS_TYPE, _FILES_TYPE = 1, 2


def encode_commit_entries(
    schema: str, added: Mapping[str, Mapping[str, int]], deleted: Mapping[str, Iterable[str]] | None = None
) -> list[Entry]:
    """Return the HFile entries of one commit: its partitions, and the files of each.

    The schema is that of HoodieMetadataRecord, from the newest block of the metadata table. ``added`` has the size in
    bytes of each new file, and ``deleted`` the names of deleted files, by partition path ("" for a table without
    partitions).

    Raises:
        InvalidTableError: a path leads out of the table, a file name is a path, or a size is not positive.
        UnsupportedFeatureError: the schema is not known.
    """
    gone = deleted or {}
    partitions = sorted({*added, *gone})
    entries = [(ALL_PARTITIONS.encode(), encode_partitions_record(schema, partitions))]
    for partition in partitions:
        value = encode_files_record(schema, added.get(partition, {}), gone.get(partition, ()))
        entries.append((_make_key(partition).encode(), value))
    return entries


def encode_files_record(schema: str, added: Mapping[str, int], deleted: Iterable[str] = ()) -> bytes:
    """Encode the files of one partition: the size in bytes of each added file, and the names of deleted files.

    Raises as ``encode_commit_entries``.
    """
    files = {}
    for name, size in added.items():
        if size <= 0:
            raise InvalidTableError("A file of the metadata table needs its size.", path=name)
        files[check_file_name(name)] = {"size": size, "isDeleted": False}
    files |= {check_file_name(name): {"size": 0, "isDeleted": True} for name in deleted}
    return _encode(schema, _FILES_TYPE, files)


def encode_partitions_record(schema: str, partitions: Iterable[str]) -> bytes:
    """Encode the names of partitions. Raises as ``encode_commit_entries``."""
    return _encode(schema, _PARTITIONS_TYPE, {_make_key(path): {"size": 0, "isDeleted": False} for path in partitions})


def _make_key(partition: str) -> str:
    return check_inside(partition) or NO_PARTITION


def _encode(schema: str, kind: int, files: Mapping[str, Any]) -> bytes:
    parsed = vet_schema(schema)
    record: dict[str, Any] = dict.fromkeys(field.name for field in parsed.record.fields)
    known = {"key": "", "type": kind, "filesystemMetadata": dict(files)}
    if parsed.name != "HoodieMetadataRecord" or not known.keys() <= record.keys():
        raise UnsupportedFeatureError(f"Records {parsed.name[:100]!r} are not those of a metadata table.")
    try:
        return encode_record(record | known, schema)
    except ValueError as error:
        raise UnsupportedFeatureError("The metadata table's records are of an unknown kind.") from error
