"""Names: data files, log files, and the paths they lie under.

Rules kept here:

* A base file is ``{file id}_{write token}_{instant}{extension}`` (Hudi FSUtils); a log file is
  ``.{file id}_{time}.log.{version}[_{write token}][.cdc]`` (Hudi HoodieLogFile). ``time`` is the base instant of the
  slice up to table version 6 and the request time of the writing delta commit from version 8 on.
* Anything else is not a data file: the parsers answer None, so a listing may be fed through them as it is.
* Instants compare as strings; no name ever becomes a number except a log version.
* A path that comes from table metadata is used only after ``check_inside``: it must stay below the table's base path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from sys import intern

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.limits import get_limits

METADATA_FOLDER = ".hoodie"  # below the table's base path (Hudi HoodieTableMetaClient.METAFOLDER_NAME)

# Columns that Hudi adds to a table's own (Hudi HoodieRecord).
COMMIT_TIME_FIELD = "_hoodie_commit_time"
COMMIT_SEQNO_FIELD = "_hoodie_commit_seqno"
RECORD_KEY_FIELD = "_hoodie_record_key"
PARTITION_PATH_FIELD = "_hoodie_partition_path"
FILE_NAME_FIELD = "_hoodie_file_name"
META_FIELDS = (COMMIT_TIME_FIELD, COMMIT_SEQNO_FIELD, RECORD_KEY_FIELD, PARTITION_PATH_FIELD, FILE_NAME_FIELD)
OPERATION_FIELD = "_hoodie_operation"  # only in tables of writers that keep the operation of a row
META_FIELDS_WITH_OPERATION = (*META_FIELDS, OPERATION_FIELD)
IS_DELETED_FIELD = "_hoodie_is_deleted"  # a column of the user's data: true deletes the row's key

BASE_FILE_EXTENSIONS = (".parquet", ".orc", ".hfile", ".lance")
CDC_SUFFIX = ".cdc"
REGISTERED_SUFFIX = "_hudiext"  # of files that another system wrote and that were registered with a table

METADATA_BOOTSTRAP_INSTANT = "00000000000001"

_BASE_FILE = re.compile(r"([^_./\\]+)_([^_./\\]*)_([0-9]{1,32})(\.[a-z]+)")
_LOG_FILE = re.compile(
    r"\.([^._/\\]+)_([0-9]{1,32})\.log\.([0-9]{1,9})(?:_([0-9]{1,18}-[0-9]{1,18}-[0-9]{1,18}))?(\.cdc)?"
)
_MARKER = re.compile(r"(.+)\.marker\.(CREATE|MERGE|APPEND)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:/")


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """The parts of a base file's name (Hudi FSUtils.getFileId, getCommitTime)."""

    file_id: str
    write_token: str
    instant: str
    extension: str

    @property
    def name(self) -> str:
        """The name that these parts spell."""
        return f"{self.file_id}_{self.write_token}_{self.instant}{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The parts of a log file's name (Hudi HoodieLogFile).

    ``instant`` is the base instant of the slice (table version 6) or the request time of the delta commit that wrote
    the file (version 8 and later); ``suffix`` is ``""`` or ``".cdc"``; very old files have no ``write_token``.
    """

    file_id: str
    instant: str
    version: int
    write_token: str | None
    suffix: str = ""

    @property
    def is_cdc(self) -> bool:
        """Whether the file holds change rows; such files never take part in a merge."""
        return self.suffix == CDC_SUFFIX

    @property
    def sort_key(self) -> tuple[str, int, str, str]:
        """Read order within a file slice: time, version as a number, write token and suffix as text."""
        return self.instant, self.version, self.write_token or "", self.suffix

    @property
    def name(self) -> str:
        """The name that these parts spell."""
        token = f"_{self.write_token}" if self.write_token is not None else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{self.suffix}"


def parse_base_file_name(name: str) -> BaseFileName | None:
    """Take a base file's name apart; None when ``name`` is not one.

    Raises:
        UnsupportedFeatureError: the file was written by another system and only registered with the table
            (names ending in ``REGISTERED_SUFFIX``); leaving it out would lose rows.
    """
    if len(name) > get_limits().name_chars:
        return None
    if name.endswith(REGISTERED_SUFFIX):
        raise UnsupportedFeatureError("files that another system wrote and registered are not supported", path=name)
    match = _BASE_FILE.fullmatch(name)
    if match is None or match[4] not in BASE_FILE_EXTENSIONS:
        return None
    return BaseFileName(match[1], match[2], match[3], match[4])


def parse_log_file_name(name: str) -> LogFileName | None:
    """Take a log file's name apart; None when ``name`` is not one."""
    if len(name) > get_limits().name_chars:
        return None
    match = _LOG_FILE.fullmatch(name)
    if match is None:
        return None
    token = None if match[4] is None else intern(match[4])  # texts that many files share are kept once
    return LogFileName(intern(match[1]), intern(match[2]), int(match[3]), token, match[5] or "")


def make_base_file_name(file_id: str, write_token: str, instant: str, extension: str = ".parquet") -> str:
    """Build a base file's name.

    Raises:
        InvalidTableError: the parts would not read back, such as a file id with an underscore in it.
    """
    parts = BaseFileName(file_id, write_token, instant, extension)
    if parse_base_file_name(parts.name) != parts:
        raise InvalidTableError("no base file can have such a name", path=parts.name)
    return parts.name


def make_log_file_name(file_id: str, instant: str, version: int, write_token: str, suffix: str = "") -> str:
    """Build a log file's name; ``instant`` as ``LogFileName`` says.

    Raises:
        InvalidTableError: the parts would not read back, such as a file id with a dot in it.
    """
    parts = LogFileName(file_id, instant, version, write_token, suffix)
    if parse_log_file_name(parts.name) != parts:
        raise InvalidTableError("no log file can have such a name", path=parts.name)
    return parts.name


class MarkerType(StrEnum):
    """What happens to the file that a marker announces (Hudi IOType).

    CREATE: a new base file of a new file group, and a log file from table version 8 on. MERGE: a new base file of a
    file group that has one. APPEND: a log file up to version 6, which a rollback undoes with a block of its own.
    """

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


def make_marker_folder(instant: str) -> str:
    """The folder of an instant's markers, relative to the table's base path."""
    return f"{METADATA_FOLDER}/.temp/{instant}"


def make_marker_path(instant: str, partition_path: str, data_file: str, kind: MarkerType) -> str:
    """The path of the empty file that announces a data file, relative to the table's base path (Hudi WriteMarkers).

    Raises:
        InvalidTableError: the partition leads out of the table.
    """
    folder = "/".join(part for part in (make_marker_folder(instant), check_inside(partition_path)) if part)
    return f"{folder}/{data_file}.marker.{kind}"


def parse_marker(marker: str) -> tuple[str, MarkerType] | None:
    """The data file that a marker announces, and why; ``marker`` is a name or a path. None when it is no marker."""
    match = _MARKER.fullmatch(marker)
    return (match[1], MarkerType(match[2])) if match is not None else None


def check_inside(rel: str) -> str:
    """Return ``rel`` when it names a place at or below the table's base path.

    ``rel`` is '/'-separated and relative; "" is the base path itself. Backslashes count as separators for the check,
    since some stores take them so.

    Raises:
        InvalidTableError: an absolute path, a URI, a ``.`` or ``..`` segment, or a NUL character.
    """
    flat = rel.replace("\\", "/")
    if (
        "\0" in rel
        or flat.startswith("/")
        or _SCHEME.match(flat) is not None
        or any(segment in (".", "..") for segment in flat.split("/"))
    ):
        raise InvalidTableError("table metadata names a path outside the table", path=rel)
    return rel


def check_partition(path: str) -> str:
    """Return ``path`` when it can be a partition: inside the table, and not among the files that manage it.

    Raises:
        InvalidTableError: as for ``check_inside``, or a segment is ``.hoodie`` in any case, as some disks ignore it.
    """
    if any(segment.casefold() == METADATA_FOLDER for segment in check_inside(path).replace("\\", "/").split("/")):
        raise InvalidTableError("table metadata names a partition among Hudi's own files", path=path[:500])
    return path


def check_bare(name: str) -> str:
    """Return ``name``, such as a file id, when it can be part of a file's name and no more.

    Raises:
        InvalidTableError: it has a separator or a NUL character, or is ``.`` or ``..``.
    """
    if "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise InvalidTableError("table metadata has a file id that no file can have", file_id=name[:200])
    return name


def find_file_name(path_or_uri: str) -> str:
    """Return the last segment of a path or URI, for plans that hold absolute locations.

    Raises:
        InvalidTableError: there is no usable last segment (empty, ``.``, ``..`` or with a NUL character).
    """
    name = path_or_uri.replace("\\", "/").rsplit("/", 1)[-1]
    if not name or name in (".", "..") or "\0" in name:
        raise InvalidTableError("table metadata names no file", path=path_or_uri)
    return name


# Partition paths -----------------------------------------------------------------------------------------------------

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
LEGACY_DEFAULT_PARTITION = "default"

_ESCAPED = frozenset(chr(code) for code in (*range(0x01, 0x20), 0x7F)) | frozenset("\"#%'*/:=?\\{[]^")
_HEX_PAIR = re.compile(r"%([0-9A-Fa-f]{2})")


def escape_partition_value(value: str) -> str:
    r"""Encode a partition value as Hudi does with url-encoding on (Hudi PartitionPathEncodeUtils.escapePathName).

    Control characters and ``" # % ' * / : = ? \ { [ ] ^`` become ``%XX`` in upper-case hex; blanks and characters
    outside ASCII stay.
    """
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in value)


def unescape_partition_value(text: str) -> str:
    """Undo ``escape_partition_value``; a ``%`` that two hex digits do not follow stays as it is."""
    return _HEX_PAIR.sub(lambda match: chr(int(match[1], 16)), text)


def split_partition_path(
    path: str, fields: tuple[str, ...], *, legacy_default: bool = False, whole: bool = False
) -> tuple[str | None, ...] | None:
    """Read the text of each partition field off a partition path, as Hudi's Spark reader does.

    With one segment a field, the text is what follows the first ``=`` of the segment (all of it without ``=``), with
    ``%XX`` undone. A single field owns the whole path when that has several segments (a value with ``/``, a date
    ``2026/01/31``); several hive-style fields own the segments up to the next ``field=``. Such texts are taken as they
    are. ``__HIVE_DEFAULT_PARTITION__`` is None.

    Args:
        path: partition path relative to the table's base path.
        fields: partition fields in path order; none of them gives ``()``.
        legacy_default: also take ``default`` for null. Hudi wrote that before 0.12 and refuses to upgrade such tables
            past version 4, so from version 6 on a partition called ``default`` holds rows of that very value.
        whole: with one segment a field, the text is the segment as it is.

    Returns:
        One text or None per field, or None when the path cannot be matched with the fields.
    """
    if not fields:
        return ()
    segments = path.split("/")
    if len(segments) == len(fields):
        texts = segments if whole else [unescape_partition_value(each.split("=", 1)[-1]) for each in segments]
    elif len(fields) == 1:
        texts = [path.removeprefix(f"{fields[0]}=")]
    else:
        texts = _split_hive_style(segments, fields)
        if len(texts) != len(fields):
            return None
    nulls = (DEFAULT_PARTITION, LEGACY_DEFAULT_PARTITION) if legacy_default else (DEFAULT_PARTITION,)
    return tuple(None if text in nulls else text for text in texts)


def _split_hive_style(segments: list[str], fields: tuple[str, ...]) -> list[str]:
    """Gather the segments of each ``field=``; the result is short when the fields do not all occur in order."""
    texts: list[str] = []
    for segment in segments:
        if len(texts) < len(fields) and segment.startswith(f"{fields[len(texts)]}="):
            texts.append(segment.partition("=")[2])
        elif texts:
            texts[-1] += f"/{segment}"
        else:
            return []
    return texts
