"""Find and delete the source files of a bootstrap whose base files a clean removes (Hudi ``CleanPlanner``).

Sources belong to the user, so a clean leaves them alone unless Hudi's option asks for them, and then deletes only what
nothing can read any more:

* The bootstrap index names the source for a base file that the same plan removes.
* It lies in the folder that was bootstrapped, in the kind of store that the table lies in. A folder that a reader was
  told to read instead does not count.
* No base file that stays has the same source, and it is no file of the table itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_BOOTSTRAP_INSTANT, parse_base_file_name
from hoodie_py.formats.timeline.plans import CleanPlan
from hoodie_py.options.write import DELETE_BOOTSTRAP_SOURCE
from hoodie_py.reader.file_slice import BaseFile, FileSlice, SourceFile
from hoodie_py.table.snapshot import Snapshot

Removed = Mapping[str, Sequence[str]]
"""Names of the files that a clean removes, by partition."""

_HINT = "Remove the plan's files from the timeline and clean again."


def find_sources(snapshot: Snapshot, removed: Removed) -> dict[str, tuple[SourceFile, ...]]:
    """Return by partition the sources that only removed base files have.

    Raises:
        InvalidTableError: a source lies outside the folder that was bootstrapped, or in the table.
        FileMissingError: the bootstrap index is gone.
        UnsupportedFeatureError: a source lies in another kind of store than the table.
    """
    staying = {source.uri for source in _iterate_staying(snapshot, removed)}
    found: dict[str, tuple[SourceFile, ...]] = {}
    for partition, names in removed.items():
        sources = tuple(each for each in _iterate_sources(snapshot, partition, names) if each.uri not in staying)
        if sources:
            found[partition] = sources
            for source in sources:
                _open_folder(snapshot.files, source)
    return found


def check_sources(snapshot: Snapshot, plan: CleanPlan, options: Mapping[str, str]) -> list[SourceFile]:
    """Return the sources that a saved plan deletes. An interrupted run may have deleted some of them.

    Raises:
        UnsupportedFeatureError: the plan deletes sources, and the options do not ask for it.
        InvalidTableError: a source is none of the base files that the plan removes, or another base file needs it.
        FileMissingError: the bootstrap index is gone.
    """
    if not plan.sources:
        return []
    if not DELETE_BOOTSTRAP_SOURCE.read(options):
        raise UnsupportedFeatureError(
            "A pending clean would delete source files of a bootstrap, which this call does not ask for.",
            hint=f"Set {DELETE_BOOTSTRAP_SOURCE} to true to delete them, or finish the clean with Java Hudi.",
        )
    from hoodie_py.formats.hfile.bootstrap_index import IndexedSource  # few tables need it and the format of its index
    from hoodie_py.table.view.bootstrap import locate_source

    found = find_sources(snapshot, plan.files)
    checked = []
    for partition, places in plan.sources.items():
        known = {source.uri: source for source in found.get(partition, ())}
        for place in places:
            source = known.get(locate_source(IndexedSource(place, None), snapshot.config.bootstrap_base_path or "").uri)
            if source is None:
                raise InvalidTableError(
                    "A clean plan deletes a file that is the source of no base file that it removes, or of another one "
                    "as well.",
                    path=place[:500],
                    hint=_HINT,
                )
            checked.append(source)
    return checked


def delete_source(files: TableFiles, source: SourceFile) -> None:
    """Delete a source that ``check_sources`` returned; a missing one is no error."""
    _open_folder(files, source).delete_with_checksum(source.path)


def _open_folder(files: TableFiles, source: SourceFile) -> TableFiles:
    if not files.is_same_kind(source.folder):
        raise UnsupportedFeatureError(
            "Deleting source files of a bootstrap in another kind of store than the table.",
            path=source.folder,
            hint=f"Clean without {DELETE_BOOTSTRAP_SOURCE}, and delete them yourself.",
        )
    folder = files.open_other(source.folder)
    if f"{folder.uri.rstrip('/')}/{source.path}".startswith(files.uri.rstrip("/") + "/"):
        raise InvalidTableError(
            "The bootstrap index names a file of the table itself as a source to delete.",
            path=source.path,
            hint=f"Clean without {DELETE_BOOTSTRAP_SOURCE}.",
        )
    return folder


def _iterate_sources(snapshot: Snapshot, partition: str, names: Collection[str]) -> Iterator[SourceFile]:
    """Yield the source of each base file of the bootstrap, whether or not it still exists."""
    for name in names:
        parsed = parse_base_file_name(name)
        if parsed is None or parsed.instant != METADATA_BOOTSTRAP_INSTANT:
            continue
        path = f"{partition}/{name}" if partition else name
        base = BaseFile(path, 0, parsed.instant, parsed.file_id)
        readable = snapshot.view.make_readable(FileSlice(partition, parsed.file_id, parsed.instant, base, ()))
        if readable.base_file is not None and readable.base_file.source is not None:
            yield readable.base_file.source


def _iterate_staying(snapshot: Snapshot, removed: Removed) -> Iterator[SourceFile]:
    for group in snapshot.view.list_file_groups():
        gone = removed.get(group.partition_path, ())
        staying = [base.name for base in group.base_files if base.name not in gone]
        yield from _iterate_sources(snapshot, group.partition_path, staying)
