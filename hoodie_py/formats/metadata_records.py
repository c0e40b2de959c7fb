"""Records of the ``files`` partition of the metadata table (Hudi HoodieMetadataPayload, HoodieMetadataRecord).

    key of the HFile entry    value
    __all_partitions__        type 1: each partition, size 0
    partition path            type 2: each file's size, or that it is deleted
    "." for the table itself  likewise, of a table without partitions

The value is bare Avro of the schema that the metadata table's own blocks have, in which every field but the type and
the map is null and ``key`` is "" (the HFile has it). Readers merge the maps of all blocks: what is not named stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro_container import vet_schema
from hoodie_py.formats.avro_container_writer import encode_record
from hoodie_py.formats.hfile import Entry
from hoodie_py.formats.names import check_inside, find_file_name

ALL_PARTITIONS = "__all_partitions__"
NO_PARTITION = "."
FILES_PARTITION = "files"
FILES_FILE_ID = "files-0000-0"

_PARTITIONS_TYPE, _FILES_TYPE = 1, 2


def encode_commit_entries(
    schema: str, added: Mapping[str, Mapping[str, int]], deleted: Mapping[str, Iterable[str]] | None = None
) -> list[Entry]:
    """Give the HFile entries that tell the metadata table of a commit: the partitions it touched, and their files.

    Args:
        schema: of HoodieMetadataRecord, from the newest block of the metadata table.
        added: sizes in bytes of new files, by name, by partition path ("" for a table without partitions).
        deleted: names of files that are gone, by partition path.

    Raises:
        InvalidTableError: a path out of the table, a file name that is a path, or a size that is not positive.
        UnsupportedFeatureError: the schema is none of those known.
    """
    gone = deleted or {}
    partitions = sorted({*added, *gone})
    entries = [(ALL_PARTITIONS.encode(), encode_partitions_record(schema, partitions))]
    for partition in partitions:
        value = encode_files_record(schema, added.get(partition, {}), gone.get(partition, ()))
        entries.append((_make_key(partition).encode(), value))
    return entries


def encode_files_record(schema: str, added: Mapping[str, int], deleted: Iterable[str] = ()) -> bytes:
    """Encode the files of one partition: sizes in bytes of those added, names of those deleted; errors as
    ``encode_commit_entries``.
    """
    files = {}
    for name, size in added.items():
        if size <= 0:
            raise InvalidTableError("a file of the metadata table needs its size", path=name)
        files[_check_bare_name(name)] = {"size": size, "isDeleted": False}
    files |= {_check_bare_name(name): {"size": 0, "isDeleted": True} for name in deleted}
    return _encode(schema, _FILES_TYPE, files)


def encode_partitions_record(schema: str, partitions: Iterable[str]) -> bytes:
    """Encode the names of partitions; errors as ``encode_commit_entries``."""
    return _encode(schema, _PARTITIONS_TYPE, {_make_key(path): {"size": 0, "isDeleted": False} for path in partitions})


def _make_key(partition: str) -> str:
    return check_inside(partition) or NO_PARTITION


def _check_bare_name(name: str) -> str:
    if find_file_name(name) != name:
        raise InvalidTableError("the metadata table names files without their folder", path=name)
    return name


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
