"""Finds partitions by listing folders.

The rules (Hudi ``FileSystemBackedTableMetadata``): a folder with a partition metafile (text, Parquet or ORC) is a
partition. The base folder counts as the one partition of a table without partition fields. ``.hoodie`` is never
entered. Each level of folders is listed in parallel. The listing that shows the metafile also lists the partition's
files, so it is returned with the partition.

Java's listing leaves out folders without a metafile and folders below a partition. Java's metadata table, which Java
uses by default, has both. So such folders with data files are *doubtful*, and a function that knows the timeline
decides about them (``file_system_view``). Tables that Java wrote have no doubtful folders.

Links to folders are followed, as in Java, except below a partition. A link to a folder above it is refused, and so are
more linked folders than ``Limits.linked_folders``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import FileInfo, TableFiles, list_folders, list_named_folders
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.names import METADATA_FOLDER, REGISTERED_SUFFIX, parse_base_file_name, parse_log_file_name
from hoodie_py.table.view.partition_values import may_hold_slash, parse_partition_constants

PARTITION_METAFILES = frozenset({
    ".hoodie_partition_metadata", ".hoodie_partition_metadata.parquet", ".hoodie_partition_metadata.orc",
})  # fmt: skip
MAX_DEPTH = 32
_FIRST_PART = 8  # folders to list first, where a few may be enough


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's path and the values that its path fixes.

    ``fields``: the partition columns whose value is in the path. ``values``: their values, in that order (None is
    null).
    """

    path: str
    fields: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionListing:
    """A partition and the files directly in its folder."""

    partition: Partition
    files: tuple[FileInfo, ...] = field(repr=False)


Keep = Callable[[Partition], bool]
MayLead = Callable[[str], bool]
Judge = Callable[[Sequence[PartitionListing]], Sequence[PartitionListing]]


class Listings(Protocol):
    """The source of partitions and files for a view: the store's folders, or the metadata table."""

    def discover(
        self, schema: pa.Schema, keep: Keep | None, judge: Judge | None, may_lead: MayLead | None
    ) -> list[PartitionListing]:
        """List the partitions of a table, as ``discover_partitions`` does."""
        ...

    def iterate(
        self, schema: pa.Schema, keep: Keep | None, judge: Judge | None, may_lead: MayLead | None
    ) -> Iterator[list[PartitionListing]]:
        """Yield the partitions of a table in parts, as ``iterate_partitions`` does."""
        ...

    def list_files(self, paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        """List the files of partitions, in their order; a missing one is empty."""
        ...


@dataclass(frozen=True, slots=True)
class FolderListings:
    """Listings of folders."""

    files: TableFiles
    config: TableConfig

    def discover(
        self, schema: pa.Schema, keep: Keep | None, judge: Judge | None, may_lead: MayLead | None
    ) -> list[PartitionListing]:
        return discover_partitions(self.files, self.config, schema, keep, judge, may_lead)

    def iterate(
        self, schema: pa.Schema, keep: Keep | None, judge: Judge | None, may_lead: MayLead | None
    ) -> Iterator[list[PartitionListing]]:
        return iterate_partitions(self.files, self.config, schema, keep, judge, may_lead)

    def list_files(self, paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        return list_named_folders(self.files, paths)


def parse_partition(config: TableConfig, schema: pa.Schema, path: str) -> Partition:
    """Return the partition at ``path`` with its typed values."""
    known = parse_partition_constants(config, schema, path)
    return Partition(path, tuple(known), tuple(known.values()))


def discover_partitions(
    files: TableFiles,
    config: TableConfig,
    schema: pa.Schema,
    keep: Keep | None = None,
    judge: Judge | None = None,
    may_lead: MayLead | None = None,
) -> list[PartitionListing]:
    """List the partitions of a table, sorted by path.

    ``keep``: whether a partition may hold wanted rows. If a folder's depth identifies it as a partition, unwanted ones
    are not even listed. ``may_lead``: whether a wanted partition may be at or below a folder's path; others are not
    listed. ``judge``: chooses the partitions among doubtful folders; None leaves all of them out.

    Raises:
        InvalidTableError: folders nest deeper than any partition path does, or links lead in a circle.
        StorageError: a listing failed.
    """
    walk = _FolderWalk(files, lambda path: parse_partition(config, schema, path), keep, may_lead)
    for _ in walk.run(_find_depth(config, schema)):
        pass
    return walk.take(judge)


def iterate_partitions(
    files: TableFiles,
    config: TableConfig,
    schema: pa.Schema,
    keep: Keep | None = None,
    judge: Judge | None = None,
    may_lead: MayLead | None = None,
) -> Iterator[list[PartitionListing]]:
    """Yield the partitions of ``discover_partitions`` in parts: a few first, more each time; no part is empty.

    The folders of a part are listed as the iterator advances.
    """
    walk = _FolderWalk(files, lambda path: parse_partition(config, schema, path), keep, may_lead)
    for _ in walk.run(_find_depth(config, schema), _FIRST_PART):
        if found := walk.take(judge):
            yield found


def _find_depth(config: TableConfig, schema: pa.Schema) -> int | None:
    """Return how deep partitions lie; None if depth does not identify them."""
    return len(config.partition_fields) if config.partition_fields and not may_hold_slash(config, schema) else None


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to list: whether it is below a partition, and the targets of the links that led to it."""

    path: str
    below: bool = False
    links: tuple[str, ...] = ()


class _FolderWalk:
    """One walk over a table's folders, which collects ``marked`` (with a metafile) and ``doubtful`` folders."""

    def __init__(
        self,
        files: TableFiles,
        partition: Callable[[str], Partition],
        keep: Keep | None,
        may_lead: MayLead | None,
    ) -> None:
        self._files = files
        self._partition = partition
        self._keep = keep
        self._may_lead = may_lead
        self._linked = 0
        self.marked: list[PartitionListing] = []
        self.doubtful: list[PartitionListing] = []

    def run(self, partition_depth: int | None, first: int | None = None) -> Iterator[None]:
        """Walk level by level, and yield after each listing. At ``partition_depth`` only wanted folders are listed.

        ``first``: list a level in parts, beginning with this number of folders and doubling it each time.
        """
        level = [_Folder("")]
        for depth in range(MAX_DEPTH + 1):
            if depth and self._may_lead is not None:
                level = [folder for folder in level if self._may_lead(folder.path)]
            if depth == partition_depth:
                level = [folder for folder in level if self._is_wanted(self._partition(folder.path))]
            below: list[_Folder] = []
            for part in _split(level, first):
                listings = list_folders(self._files, [folder.path for folder in part])
                for folder, listing in zip(part, listings, strict=True):
                    below += self._enter_folder(folder, listing)
                yield
            level = below
            if not level:
                return
        if deepest := next((folder for folder in level if not folder.below), None):
            raise InvalidTableError(f"Folders nest deeper than {MAX_DEPTH} levels.", path=deepest.path[:500])

    def take(self, judge: Judge | None) -> list[PartitionListing]:
        """Return the partitions found since the last call, sorted by path; ``judge`` as for ``discover_partitions``."""
        named = judge(self.doubtful) if judge is not None and self.doubtful else []
        found = sorted([*self.marked, *named], key=lambda each: each.partition.path)
        self.marked, self.doubtful = [], []
        return found

    def _enter_folder(self, folder: _Folder, listing: Sequence[FileInfo]) -> list[_Folder]:
        """Note a folder if it is a partition or doubtful, and return its subfolders to list next."""
        is_marked = any(info.name in PARTITION_METAFILES for info in listing if not info.is_dir)
        if is_marked and not folder.below:
            self._note_folder(self.marked, folder, listing)
        elif any(is_data_file(info.name) for info in listing if not info.is_dir):
            self._note_folder(self.doubtful, folder, listing)
        below = folder.below or is_marked
        inner = (info for info in listing if info.is_dir and info.name != METADATA_FOLDER)
        return [
            _Folder(info.path, below, self._follow_link(folder, info) if info.is_link else folder.links)
            for info in inner
            if not (below and info.is_link)
        ]

    def _note_folder(self, found: list[PartitionListing], folder: _Folder, listing: Sequence[FileInfo]) -> None:
        partition = self._partition(folder.path)
        if self._is_wanted(partition):
            found.append(PartitionListing(partition, tuple(info for info in listing if not info.is_dir)))

    def _is_wanted(self, partition: Partition) -> bool:
        return self._keep is None or self._keep(partition)

    def _follow_link(self, folder: _Folder, link: FileInfo) -> tuple[str, ...]:
        """Check the target of a link, and return the targets of all links that led to it.

        Raises:
            InvalidTableError: the link leads to a folder above it, or there are too many links.
        """
        target, here = self._files.local_path(link.path) or "", self._files.local_path(folder.path) or ""
        if target in folder.links or f"{here}/".startswith(f"{target}/"):
            raise InvalidTableError(
                "A link leads back to a folder above it, so folders nest deeper than in any table.",
                hint="Remove the link.",
                path=link.path[:500],
            )
        self._linked += 1
        if self._linked > get_limits().linked_folders:
            raise_limit_error(
                InvalidTableError, f"Links lead to {self._linked} folders", "linked_folders", path=link.path[:500]
            )
        return (*folder.links, target)


def _split(folders: list[_Folder], first: int | None) -> Iterator[list[_Folder]]:
    """Yield folders in parts: ``first`` of them, then twice as many each time; all at once if it is None."""
    start, size = 0, first or max(1, len(folders))
    while start < len(folders):
        yield folders[start : start + size]
        start, size = start + size, size * 2


def is_data_file(name: str) -> bool:
    """Say whether a name belongs to a base file, a log file, or a file registered with the table."""
    if name.startswith("."):
        return parse_log_file_name(name) is not None
    return name.endswith(REGISTERED_SUFFIX) or parse_base_file_name(name) is not None
