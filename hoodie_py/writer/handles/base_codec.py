"""Choose the codec of new base files: from the options, else from the table's newest base file, else snappy.

A table keeps its codec because its readers are known to support it: stock Flink reads no zstd. Java Hudi, Spark, Flink,
Trino and Hive read snappy. They all read gzip, Java Hudi's default, too, but writing it takes four times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from hoodie_py.errors import CorruptFileError, FileMissingError
from hoodie_py.formats.names import parse_base_file_name
from hoodie_py.formats.parquet import CODECS, DEFAULT_CODEC
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.settings import FileSettings

_MOST_COMMITS, _MOST_FILES = 16, 4  # bounded, as most commits of merge-on-read tables write only logs


def choose_codec(settings: FileSettings, snapshot: Snapshot, slices: Sequence[FileSlice] = ()) -> FileSettings:
    """Return the settings with a codec set.

    Base files of ``slices``, which the caller has loaded, are looked at before any commit is read.

    Raises:
        StorageError: a file cannot be read.
    """
    if settings.codec is not None:
        return settings
    at_hand = [each.base_file for each in slices if each.base_file is not None]
    newest: Iterable[BaseFile] = sorted(
        at_hand, key=lambda each: each.instant, reverse=True
    ) or _iterate_newest_base_files(snapshot)
    found = (_read_codec(snapshot, each) for each in islice(newest, _MOST_FILES))
    return replace(settings, codec=next(filter(None, found), DEFAULT_CODEC))


def _iterate_newest_base_files(snapshot: Snapshot) -> Iterator[BaseFile]:
    """Yield one base file from each of the newest commits that wrote base files."""
    for instant in reversed(snapshot.timeline.list_completed_writes()[-_MOST_COMMITS:]):
        stats = (each for some in snapshot.timeline.read_metadata(instant).write_stats.values() for each in some)
        for stat in stats:
            if stat.path is not None and stat.num_writes and parse_base_file_name(stat.file_name or ""):
                yield BaseFile(stat.path, stat.file_size_in_bytes, instant.request_time, stat.file_id or "")
                break


def _read_codec(snapshot: Snapshot, base_file: BaseFile) -> str | None:
    """Read a file's codec from its footer; None if it is unknown or the file is gone."""
    try:
        footer = BaseFileReader(snapshot.files, base_file).footer
    except (CorruptFileError, FileMissingError):
        return None
    if footer is None or not footer.num_row_groups or not footer.num_columns:
        return None
    codec = str(footer.row_group(0).column(0).compression).lower()
    return codec if codec in CODECS else None
