"""The records of ``bloom_filters``: the filter over record keys in the footer of each new base file (Hudi
``HoodieTableMetadataUtil.convertMetadataToBloomFilterRecords``).

A record contains the filter's text unchanged, its type and the instant. A base file without a filter gets no record,
and readers look into the file itself. Log files have no filters. The records of deleted files are deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_texts, join_chunks, repeat_value
from hoodie_py.files import TableFiles
from hoodie_py.formats.indexes.keys import BLOOM_FILTER_TYPE, encode_file_names, encode_partitions, make_bloom_keys
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN
from hoodie_py.formats.parquet.bloom import SIMPLE
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY
from hoodie_py.options.indexes import BLOOM_GROUPS
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.indexes.entry_checks import Facts
from hoodie_py.writer.indexes.index import GroupPlan, Index, MetadataCommit, PartitionRecords, Portion, place_records
from hoodie_py.writer.indexes.table_source import IndexSource

BLOOM_TYPE: Final = pa.struct(
    [("type", pa.string()), ("timestamp", pa.string()), ("bloomFilter", pa.binary()), ("isDeleted", pa.bool_())]
)
_AT_ONCE = 16
_BUILT_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class FileBloom:
    """The filter of one base file: its text, and its type."""

    partition_path: str
    name: str
    type: str
    text: bytes


@dataclass(frozen=True, slots=True)
class Blooms(Index):
    """The partition ``bloom_filters``. A check compares each filter with the one in the footer of its base file."""

    _prefix = "bloom-filters-"
    extra_is_stale = True

    blooms: tuple[FileBloom, ...] = ()
    """The filters of an instant's new base files."""

    def prepare(self, change: MetadataCommit) -> Self:
        """Read the filters of an instant's new base files; errors as ``read_blooms``."""
        paths = ((result.stat.partition_path, result.path.rpartition("/")[2]) for result in change.results)
        return replace(self, blooms=tuple(read_blooms(change.session.files, paths)))

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant: filters of its new base files, and deletes for the files that it removes."""
        del view
        deleted = list_deleted_keys(change.deleted)
        made = make_bloom_records(self.blooms, change.instant)
        return PartitionRecords(self.partition, made, deleted if len(deleted) else None)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the filters of all base files, including old versions; errors as ``read_blooms``."""
        instant = source.last_instant
        blooms = read_blooms(source.snapshot.files, source.list_places())
        while some := list(islice(blooms, _BUILT_AT_ONCE)):
            yield place_records(make_bloom_records(some, instant), groups)

    def count_groups(self, options: Mapping[str, str]) -> int:
        """Return the number that the options say."""
        return BLOOM_GROUPS.read(options)

    def describe(self, source: IndexSource, rows: pa.Table, owner: str | None) -> Facts:
        """Describe each filter by its type and a hash of its text."""
        del source, owner
        blooms = join_chunks(rows[BLOOM_COLUMN])
        texts = (
            hashlib.sha256(each or b"").hexdigest()[:16] for each in pc.struct_field(blooms, "bloomFilter").to_pylist()
        )
        kinds = pc.struct_field(blooms, "type")
        values = pc.binary_join_element_wise(kinds, from_texts(list(texts), pa.string()), " ")
        kept = pc.invert(pc.fill_null(pc.struct_field(blooms, "isDeleted"), False))
        return Facts(join_chunks(rows["key"]).cast(pa.string()).filter(kept), values.filter(kept))


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
