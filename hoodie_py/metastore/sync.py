"""Bring a table's entries in a catalog up to date (Hudi ``HiveSyncTool``).

The rules:

* An entry that is up to date is not written, so a second sync changes nothing.
* Only partitions that commits since the last sync wrote or replaced are compared. All partitions are compared if the
  last sync is unknown, or if its commit is no longer in the timeline (it was archived, or a restore undid it).
* The catalog has a partition while the partition has files that a query reads. Its values come from its path.
* An entry of the same name that is no Hudi table, or that is a table at another place, is left alone, with an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import PARTITION_EXTRACTOR, TableConfig
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.metastore.description import describe_entries, find_partition_fields, may_become
from hoodie_py.metastore.entry import (
    LAST_COMPLETION,
    LAST_INSTANT,
    SERDE_PATH,
    CatalogPartition,
    Column,
    Entry,
    Metastore,
)
from hoodie_py.metastore.report import SyncedEntry, SyncResult
from hoodie_py.metastore.settings import SyncSettings, read_settings
from hoodie_py.options import sync as options
from hoodie_py.options.sync import EXTRACTOR
from hoodie_py.table.snapshot import Snapshot

_S3 = re.compile(r"^s3[an]?:/+")
_FILE = re.compile(r"^file:/+")

_Extract = Callable[[str], tuple[str, ...]]

_PACKAGES = ("org.apache.hudi.hive.", "org.apache.hudi.sync.common.model.partextractor.")
_DAY = re.compile(r"(?:[^/=]+=)?(\d{4})/(?:[^/=]+=)?(\d{1,2})/(?:[^/=]+=)?(\d{1,2})", re.ASCII)
_HOUR = re.compile(rf"{_DAY.pattern}/(?:[^/=]+=)?(\d{{1,2}})", re.ASCII)


def sync_table(
    snapshot: Snapshot,
    metastore: Metastore,
    *,
    database: str | None = None,
    table: str | None = None,
    given: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> SyncResult:
    """Bring the entries of a table up to date, and return what changed.

    Raises:
        InvalidQueryError: a wrong option; a column that cannot become what the table has; a partition path without
            the values that the partition columns need.
        InvalidTableError: the table has no commits.
        ConflictError: another table has the name.
        UnsupportedFeatureError: a table or an option that is not supported.
        StorageError: the catalog cannot be reached, or refuses.
    """
    settings = read_settings(snapshot.config, given or {}, metastore.kind, database, table)
    location = options.BASE_PATH.read(settings.given) or _find_location(snapshot, metastore.kind)
    wanted = describe_entries(snapshot, settings, location)
    progress = _find_progress(snapshot)
    if not metastore.has_database(settings.database):
        if not options.CREATE_DATABASE.read(settings.given):
            raise InvalidQueryError(f"The catalog has no database {settings.database}.")
        if not dry_run:
            metastore.create_database(settings.database)
    known = {each.name: metastore.find(each.database, each.name) for each in wanted}
    for each in wanted:
        found = known[each.name]
        if found is not None:
            _check_same_table(found, each)
            _check_columns(found, each)
    partitions = _Partitions(snapshot, settings, location)
    done = tuple(
        _EntrySync(metastore, each, known[each.name], settings, dry_run).run(partitions, progress) for each in wanted
    )
    return SyncResult(done, progress[LAST_INSTANT], dry_run)


def _find_location(snapshot: Snapshot, kind: str) -> str:
    """Return the base path as the catalog's engines open it. As in Java, a local path has no scheme."""
    if snapshot.files.is_local or kind == "glue":
        return snapshot.files.uri
    return snapshot.files.java_uri


def _find_progress(snapshot: Snapshot) -> dict[str, str]:
    """Return the properties that record up to which commit the catalog knows the table."""
    writes = snapshot.timeline.list_completed_writes()
    found = {LAST_INSTANT: writes[-1].request_time}
    if snapshot.config.timeline_layout > 1:
        found[LAST_COMPLETION] = max(each.completion_time or each.request_time for each in writes)
    return found


def _check_same_table(found: Entry, wanted: Entry) -> None:
    if not found.is_hudi:
        raise ConflictError(
            f"The catalog has another table {found.full_name}, which is no Hudi table.",
            hint=f"Name the entry otherwise with {options.TABLE}, or drop the other one.",
        )
    if normalize_location(found.base_path) != normalize_location(wanted.location):
        raise ConflictError(
            f"The catalog has a table {found.full_name} at another place.",
            hint=f"Name the entry otherwise with {options.TABLE}, or drop it if the table has moved.",
            location=found.base_path,
        )


def normalize_location(location: str) -> str:
    """Return a base path in a form that is equal for all spellings of the same place."""
    text = _FILE.sub("/", _S3.sub("s3://", location.strip()))
    return text.rstrip("/")


def _check_columns(found: Entry, wanted: Entry) -> None:
    """Refuse other partition columns, because no catalog can change those of an existing entry."""
    if [each.name.lower() for each in found.partition_columns] != [
        each.name.lower() for each in wanted.partition_columns
    ]:
        raise InvalidQueryError(
            f"The catalog's table {found.full_name} has other partition columns.",
            hint="Drop it from the catalog, and sync again.",
            catalog=", ".join(each.name for each in found.partition_columns) or "none",
            table=", ".join(each.name for each in wanted.partition_columns) or "none",
        )


class _Partitions:
    """The partitions of a table with their values and folders.

    Listings are cached, because several entries share them.
    """

    def __init__(self, snapshot: Snapshot, settings: SyncSettings, location: str) -> None:
        self._snapshot = snapshot
        self._location = location
        self.fields = find_partition_fields(snapshot.config, settings)
        self._extract: _Extract = choose_extractor(snapshot.config, self.fields, options.EXTRACTOR.read(settings.given))
        self._live: dict[frozenset[str] | None, dict[tuple[str, ...], tuple[str, CatalogPartition]]] = {}

    def find_touched(self, synced: Mapping[str, str]) -> frozenset[str] | None:
        """Return the paths of partitions that commits since the last sync wrote or replaced; None: any may be.

        ``synced``: parameters of the entry, with the progress of the last sync.
        """
        last, completion = synced.get(LAST_INSTANT), synced.get(LAST_COMPLETION)
        writes = self._snapshot.timeline.list_completed_writes()
        if last is None or all(each.request_time != last for each in writes):
            return None
        news = [each for each in writes if _is_later(each, last, completion)]
        metadata = self._snapshot.timeline.read_all_metadata(news)
        return frozenset(path for each in metadata for path in (*each.write_stats, *each.replaced_file_ids))

    def list_live(self, paths: frozenset[str] | None) -> dict[tuple[str, ...], tuple[str, CatalogPartition]]:
        """Return the partitions that have files to read, by value, with their paths.

        ``paths``: the partitions to look at; None for all.
        """
        if paths not in self._live:
            view = self._snapshot.choose_view()
            asked = [each.partition.path for each in view.list_partitions()] if paths is None else sorted(paths)
            slices = view.list_named_slices(None, asked)
            self._live[paths] = dict(map(self._describe, sorted({each.partition_path for each in slices})))
        return self._live[paths]

    def find_values(self, path: str) -> tuple[str, ...]:
        """Return the values of a partition from its path."""
        values = self._extract(path)
        if len(values) != len(self.fields):
            raise InvalidQueryError(
                f"A partition's path gives {len(values)} values, but there are {len(self.fields)} partition columns.",
                hint=f"Name another class in {options.EXTRACTOR}, or the columns in {options.PARTITION_FIELDS}.",
                partition=path,
            )
        return values

    def _describe(self, path: str) -> tuple[tuple[str, ...], tuple[str, CatalogPartition]]:
        values = self.find_values(path)
        return values, (path, CatalogPartition(values, f"{self._location.rstrip('/')}/{path}"))


def _is_later(instant: Instant, last: str, completion: str | None) -> bool:
    """Whether a sync that knew ``last`` did not know an instant.

    Instants may complete out of order, so an earlier instant is later, too, if it completed after ``completion``.
    """
    if instant.request_time > last:
        return True
    return completion is not None and (instant.completion_time or "") > completion


@dataclass(frozen=True, slots=True)
class _EntrySync:
    """The sync of one entry."""

    metastore: Metastore
    wanted: Entry
    known: Entry | None
    settings: SyncSettings
    dry_run: bool

    def run(self, partitions: _Partitions, progress: Mapping[str, str]) -> SyncedEntry:
        """Bring the entry and its partitions up to date."""
        entry, known = self.wanted, self.known
        if known is None:
            if not self.dry_run:
                self.metastore.create(entry)
            # The progress is written last: after a failure in between, the next sync compares all partitions.
            done = self._sync_partitions(partitions, None)
            self._alter(replace(entry, parameters={**entry.parameters, **progress}))
            return replace(done, is_new=True)
        columns = _has_other_columns(known, entry)
        properties = _find_changes(known, entry)
        if columns:
            _check_types(known, entry)
        if columns or properties:
            self._alter(entry)
        done = self._sync_partitions(partitions, partitions.find_touched(known.parameters))
        done = replace(done, columns=columns, properties=properties)
        # The progress is written last: after a failure, the next sync compares the same partitions again.
        late = tuple(name for name, value in progress.items() if known.parameters.get(name) != value)
        if late and (done.has_changed or not options.CONDITIONAL.read(self.settings.given)):
            self._alter(replace(entry, parameters={**entry.parameters, **progress}))
            done = replace(done, properties=(*properties, *late))
        return done

    def _alter(self, entry: Entry) -> None:
        if self.dry_run:
            return
        known = self.metastore.find(entry.database, entry.name)
        if known is None:
            raise ConflictError(f"The catalog's table {entry.full_name} was dropped meanwhile.", hint="Sync again.")
        self.metastore.alter(known, entry)

    def _sync_partitions(self, partitions: _Partitions, touched: frozenset[str] | None) -> SyncedEntry:
        """Add, move and drop partitions; ``touched``: paths of the partitions to look at, None for all."""
        done = SyncedEntry(self.wanted.full_name)
        if not partitions.fields or (touched is not None and not touched):
            return done
        live = partitions.list_live(touched)
        asked = None if touched is None else [partitions.find_values(path) for path in sorted(touched)]
        there: dict[tuple[str, ...], CatalogPartition] = {}
        if self.known is not None:
            there = {each.values: each for each in self.metastore.list_partitions(self.known, asked)}
        added = [pair for values, pair in live.items() if values not in there]
        moved = [
            pair
            for values, pair in live.items()
            if values in there and normalize_location(there[values].location) != normalize_location(pair[1].location)
        ]
        dropped = [values for values in there if values not in live]
        if not self.dry_run:
            entry = self.wanted
            if added:
                self.metastore.add_partitions(entry, [partition for _, partition in added])
            if moved:
                self.metastore.move_partitions(entry, [partition for _, partition in moved])
            if dropped:
                self.metastore.drop_partitions(entry, dropped)
        return replace(
            done,
            added=tuple(path for path, _ in added),
            moved=tuple(path for path, _ in moved),
            dropped=tuple("/".join(values) for values in dropped),
        )


def _has_other_columns(known: Entry, wanted: Entry) -> bool:
    return _list_types(known.columns) != _list_types(wanted.columns)


def _list_types(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(each.name.lower(), each.type.lower().replace(" ", "")) for each in columns]


def _check_types(known: Entry, wanted: Entry) -> None:
    """Refuse a column type with which engines could not read older files.

    The Hive Metastore has more rules of its own.
    """
    types = dict(_list_types(known.columns))
    for name, type_ in _list_types(wanted.columns):
        before = types.get(name)
        if before is not None and not may_become(before, type_):
            raise InvalidQueryError(
                f"The catalog's column {name} is {before} and cannot become {type_}.",
                hint="Drop the table from the catalog, and sync again.",
                table=known.full_name,
            )


def _find_changes(known: Entry, wanted: Entry) -> tuple[str, ...]:
    """Return the names of properties that the entry lacks or has with another value."""
    found = [name for name, value in wanted.parameters.items() if known.parameters.get(name) != value]
    found += [
        name
        for name, value in wanted.serde_parameters.items()
        if name != SERDE_PATH and known.serde_parameters.get(name) != value
    ]
    same_location = normalize_location(known.location) == normalize_location(wanted.location)
    facts = {
        "location": same_location,
        "input format": known.input_format == wanted.input_format,
        "output format": known.output_format == wanted.output_format,
    }
    return (*found, *(name for name, same in facts.items() if not same))


def choose_extractor(config: TableConfig, fields: tuple[str, ...], given: str | None) -> _Extract:
    """Return the function that gives the values of a partition path (Hudi's ``PartitionValueExtractor`` classes).

    ``given`` is the class that an option names. Without it, the table's properties name the class; else it follows from
    the partition fields.

    Raises:
        UnsupportedFeatureError: the class is not one of Hudi's own.
    """
    name = given or config.properties.get(PARTITION_EXTRACTOR, "").strip() or _infer(config, fields)
    for package in _PACKAGES:
        found = _EXTRACTORS.get(name.removeprefix(package)) if name.startswith(package) else None
        if found is not None:
            return found
    raise UnsupportedFeatureError(
        f"The values of partitions come from the class {name[:200]}, which only Java can run.",
        hint=f"Name one of Hudi's own classes in {EXTRACTOR}.",
    )


def _infer(config: TableConfig, fields: tuple[str, ...]) -> str:
    if not fields:
        return f"{_PACKAGES[0]}NonPartitionedExtractor"
    if len(fields) > 1:
        return f"{_PACKAGES[0]}MultiPartKeysValueExtractor"
    if config.hive_style_partitioning:
        return f"{_PACKAGES[0]}HiveStylePartitionValueExtractor"
    if config.slash_separated_date_partitioning:
        return f"{_PACKAGES[0]}SlashEncodedDayPartitionValueExtractor"
    return f"{_PACKAGES[0]}SinglePartPartitionValueExtractor"


def _split(path: str) -> tuple[str, ...]:
    return tuple(_take_value(part) for part in path.split("/")) if path else ()


def _take_value(part: str) -> str:
    name, equals, value = part.partition("=")
    if "=" in value or (equals and not (name and value)):
        raise _make_error(part)
    return value if equals else part


def _take_hive_style(path: str) -> tuple[str, ...]:
    if "=" not in path:
        raise _make_error(path)
    return (_take_value(path),)


def _take_day(path: str) -> tuple[str, ...]:
    return ("-".join(_match(_DAY, path)),)


def _take_hour(path: str) -> tuple[str, ...]:
    return ("-".join(_match(_HOUR, path)),)


_EXTRACTORS: dict[str, _Extract] = {
    "MultiPartKeysValueExtractor": _split,
    "HiveStylePartitionValueExtractor": _take_hive_style,
    "SinglePartPartitionValueExtractor": lambda path: (path,),
    "SlashEncodedDayPartitionValueExtractor": _take_day,
    "SlashEncodedHourPartitionValueExtractor": _take_hour,
    "NonPartitionedExtractor": lambda _: (),
}


def _match(pattern: re.Pattern[str], path: str) -> list[str]:
    found = pattern.fullmatch(path)
    if found is None:
        raise _make_error(path)
    year, *rest = found.groups()
    return [year, *(each.zfill(2) for each in rest)]


def _make_error(path: str) -> InvalidQueryError:
    return InvalidQueryError(
        "A partition's path is not of the form that the class of its values expects.",
        hint=f"Name another class in {EXTRACTOR}.",
        partition=path[:200],
    )
