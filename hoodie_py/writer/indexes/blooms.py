"""The records of ``bloom_filters``: the filter over record keys in the footer of each new base file (Hudi
``HoodieTableMetadataUtil.convertMetadataToBloomFilterRecords``).

A record contains the filter's text unchanged, its type and the instant. A base file without a filter gets no record,
and readers look into the file itself. Log files have no filters. The records of deleted files are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pyarrow as pa

from hoodie_py.arrow.arrays import from_texts, repeat_value
from hoodie_py.files import TableFiles
from hoodie_py.formats.indexes.keys import (
    BLOOM_FILTER_TYPE,
    encode_file_names,
    encode_partitions,
    make_bloom_keys,
)
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN
from hoodie_py.formats.parquet.bloom import SIMPLE
from hoodie_py.formats.parquet.footer_keys import BLOOM_KEY, BLOOM_TYPE_KEY
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.indexes.index import MetadataCommit, PartitionRecords

BLOOM_TYPE: Final = pa.struct(
    [("type", pa.string()), ("timestamp", pa.string()), ("bloomFilter", pa.binary()), ("isDeleted", pa.bool_())]
)
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class FileBloom:
    """The filter of one base file: its text, and its type."""

    partition_path: str
    name: str
    type: str
    text: bytes


def read_commit_blooms(commit: MetadataCommit, _partition: str) -> tuple[FileBloom, ...]:
    """Read the filters of an instant's new base files; errors as ``read_blooms``."""
    paths = ((result.stat.partition_path, result.path.rpartition("/")[2]) for result in commit.results)
    return tuple(read_blooms(commit.session.files, paths))


def read_blooms(files: TableFiles, paths: Iterable[tuple[str, str]]) -> Iterator[FileBloom]:
    """Yield the filters of data files, in parallel; files without a filter are skipped.

    ``paths``: partition path and name of each file.

    Raises:
        CorruptFileError: a file is damaged.
        FileMissingError: a file is missing.
        StorageError: the store refused.
    """
    remaining = (each for each in paths if not each[1].startswith("."))
    read = carry_span(lambda place: _read_bloom(files, *place))
    with ThreadPoolExecutor(_AT_ONCE, "hoodie-blooms") as pool:
        while some := list(islice(remaining, 2 * _AT_ONCE)):
            yield from (each for each in pool.map(read, some) if each is not None)


def _read_bloom(files: TableFiles, partition_path: str, name: str) -> FileBloom | None:
    path = f"{partition_path}/{name}" if partition_path else name
    facts = open_by_extension(files, BaseFile(path, 0, "", "")).key_facts
    text = facts.get(BLOOM_KEY.encode())
    if text is None:
        return None
    return FileBloom(partition_path, name, facts.get(BLOOM_TYPE_KEY.encode(), SIMPLE.encode()).decode(), text)


def make_bloom_filters(commit: MetadataCommit, partition: str, _view: MetadataView) -> PartitionRecords:
    """Make the records of an instant: filters of its new base files, and deletes for the files that it removes."""
    prepared = commit.prepared.get(partition)
    blooms = prepared if isinstance(prepared, tuple) else ()
    deleted = list_deleted_keys(commit.deleted)
    return PartitionRecords(partition, make_bloom_records(blooms, commit.instant), deleted if len(deleted) else None)


def make_bloom_records(blooms: Sequence[FileBloom], instant: str) -> pa.Table:
    """Make the records of filters that an instant writes."""
    arrays = [
        from_texts([each.type for each in blooms], pa.string()),
        repeat_value(instant, pa.string(), len(blooms)),
        from_texts([each.text for each in blooms], pa.binary()),
        repeat_value(False, pa.bool_(), len(blooms)),
    ]
    return pa.table(
        {
            "key": _make_keys([(each.partition_path, each.name) for each in blooms]),
            "type": repeat_value(BLOOM_FILTER_TYPE, pa.int32(), len(blooms)),
            BLOOM_COLUMN: pa.StructArray.from_arrays(arrays, fields=list(BLOOM_TYPE)),
        }
    )


def list_deleted_keys(deleted: Mapping[str, Sequence[str]]) -> pa.Array:
    """Return the keys of the records of base files. ``deleted``: file names by partition path."""
    return _make_keys([(path, name) for path, names in deleted.items() for name in names if not name.startswith(".")])


def _make_keys(places: Sequence[tuple[str, str]]) -> pa.Array:
    return make_bloom_keys(encode_partitions(path for path, _ in places), encode_file_names(name for _, name in places))
