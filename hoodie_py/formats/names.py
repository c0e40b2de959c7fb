"""Names in a Hudi table: columns, folders, data files, log files, markers and partition paths.

* A base file is ``{file id}_{write token}_{instant}{extension}`` (Hudi FSUtils). A log file is
  ``.{file id}_{time}.log.{version}[_{write token}][.cdc]`` (Hudi HoodieLogFile). ``time`` is the base instant of the
  slice up to table version 6, and the request time of the writing delta commit from version 8 on.
* The parsers return None for other names, so callers may pass a whole listing through them.
* Instants compare as strings. Only a log version becomes a number.
* A path from table metadata is used only after ``check_inside``: it must stay below the table's base path.
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
OPERATION_FIELD = "_hoodie_operation"  # only in tables whose writers store the operation of a row
META_FIELDS_WITH_OPERATION = (*META_FIELDS, OPERATION_FIELD)
IS_DELETED_FIELD = "_hoodie_is_deleted"  # a column of the user's data: true deletes the row's key

# Fields of change records, in change logs and in queries of changes (Hudi HoodieCDCUtils).
OP, KEY, TIME, BEFORE, AFTER = "op", "record_key", "ts_ms", "before", "after"

BASE_FILE_EXTENSIONS = (".parquet", ".orc", ".hfile", ".lance")
CDC_SUFFIX = ".cdc"
REGISTERED_SUFFIX = "_hudiext"  # files of another system that are registered with a table

METADATA_BOOTSTRAP_INSTANT = "00000000000001"
FULL_BOOTSTRAP_INSTANT = "00000000000002"

_SURELY_SHORT = 128  # characters, below every limit of names: reading the limit takes longer than the rest
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
        """The file name."""
        return f"{self.file_id}_{self.write_token}_{self.instant}{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The parts of a log file's name (Hudi HoodieLogFile).

    ``instant`` is the base instant of the slice (table version 6) or the request time of the delta commit that wrote
    the file (version 8 and later). ``suffix`` is ``""`` or ``".cdc"``. Very old files have no ``write_token``.
    """

    file_id: str
    instant: str
    version: int
    write_token: str | None
    suffix: str = ""

    @property
    def is_cdc(self) -> bool:
        """Whether the file contains change rows; a merge never reads it."""
        return self.suffix == CDC_SUFFIX

    @property
    def sort_key(self) -> tuple[str, int, str, str]:
        """The key of the read order in a file slice: time, version as a number, write token and suffix as text."""
        return self.instant, self.version, self.write_token or "", self.suffix

    @property
    def name(self) -> str:
        """The file name."""
        token = f"_{self.write_token}" if self.write_token is not None else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{self.suffix}"


def parse_base_file_name(name: str) -> BaseFileName | None:
    """Parse a base file's name; None if ``name`` is not one.

    Raises UnsupportedFeatureError if the file was written by another system and only registered with the table (its
    name ends with ``REGISTERED_SUFFIX``); ignoring it would lose rows.
    """
    if len(name) > _SURELY_SHORT and len(name) > get_limits().name_chars:
        return None
    if name.endswith(REGISTERED_SUFFIX):
        raise UnsupportedFeatureError("Files that another system wrote and registered are not supported.", path=name)
    match = _BASE_FILE.fullmatch(name)
    if match is None or match[4] not in BASE_FILE_EXTENSIONS:
        return None
    return BaseFileName(match[1], match[2], match[3], match[4])


def parse_log_file_name(name: str) -> LogFileName | None:
    """Parse a log file's name; None if ``name`` is not one."""
    if len(name) > _SURELY_SHORT and len(name) > get_limits().name_chars:
        return None
    match = _LOG_FILE.fullmatch(name)
    if match is None:
        return None
    token = None if match[4] is None else intern(match[4])  # many files share these texts: each is stored once
    return LogFileName(intern(match[1]), intern(match[2]), int(match[3]), token, match[5] or "")


def make_base_file_name(file_id: str, write_token: str, instant: str, extension: str = ".parquet") -> str:
    """Build a base file's name.

    Raises:
        InvalidTableError: the name would not parse to the same parts, for example if the file id contains an
        underscore.
    """
    parts = BaseFileName(file_id, write_token, instant, extension)
    if parse_base_file_name(parts.name) != parts:
        raise InvalidTableError("No base file can have such a name.", path=parts.name)
    return parts.name


def make_log_file_name(file_id: str, instant: str, version: int, write_token: str, suffix: str = "") -> str:
    """Build a log file's name; ``LogFileName`` describes the parts.

    Raises InvalidTableError if the name would not parse to the same parts, for example if the file id contains a dot.
    """
    parts = LogFileName(file_id, instant, version, write_token, suffix)
    if parse_log_file_name(parts.name) != parts:
        raise InvalidTableError("No log file can have such a name.", path=parts.name)
    return parts.name


class MarkerType(StrEnum):
    """How a write creates the file that a marker announces (Hudi IOType).

    CREATE: a new base file of a new file group, or from table version 8 on a log file. MERGE: a new base file of a file
    group that has one. APPEND: a log file up to version 6, which a rollback undoes with a rollback block.
    """

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


def make_marker_folder(instant: str) -> str:
    """Return the folder of an instant's markers, relative to the table's base path."""
    return f"{METADATA_FOLDER}/.temp/{instant}"


def make_marker_path(instant: str, partition_path: str, data_file: str, kind: MarkerType) -> str:
    """Return the path of the marker of a data file, relative to the table's base path (Hudi WriteMarkers).

    Raises InvalidTableError if the partition leads out of the table.
    """
    folder = "/".join(part for part in (make_marker_folder(instant), check_inside(partition_path)) if part)
    return f"{folder}/{data_file}.marker.{kind}"


def parse_marker(marker: str) -> tuple[str, MarkerType] | None:
    """Return the data file and the type of a marker, given by name or path; None if ``marker`` is not one."""
    match = _MARKER.fullmatch(marker)
    return (match[1], MarkerType(match[2])) if match is not None else None


def check_inside(rel: str) -> str:
    """Return ``rel`` if it is a path at or below the table's base path.

    ``rel`` is '/'-separated and relative; "" is the base path itself. Backslashes count as separators here, because
    they are separators in some stores.

    Raises InvalidTableError for an absolute path, a URI, a ``.`` or ``..`` segment, or a NUL character.
    """
    flat = rel.replace("\\", "/")
    if (
        "\0" in rel
        or flat.startswith("/")
        or _SCHEME.match(flat) is not None
        or any(segment in (".", "..") for segment in flat.split("/"))
    ):
        raise InvalidTableError("Table metadata names a path outside the table.", path=rel)
    return rel


def check_partition(path: str) -> str:
    """Return ``path`` if it can be a partition: inside the table, and not below its folder ``.hoodie``.

    Raises InvalidTableError as ``check_inside``, and if a segment is ``.hoodie`` in upper or lower case: some file
    systems ignore case.
    """
    if any(segment.casefold() == METADATA_FOLDER for segment in check_inside(path).replace("\\", "/").split("/")):
        raise InvalidTableError("Table metadata names a partition among Hudi's own files.", path=path[:500])
    return path


def check_bare(name: str) -> str:
    """Return ``name``, for example a file id, if it can be part of a file's name.

    Raises InvalidTableError if it contains a separator or a NUL character, or is ``.`` or ``..``.
    """
    if "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise InvalidTableError("Table metadata has a file id that no file can have.", file_id=name[:200])
    return name


def find_file_name(path_or_uri: str) -> str:
    """Return the last segment of a path or URI; some plans contain absolute locations.

    Raises InvalidTableError if the last segment is empty, ``.`` or ``..``, or contains a NUL character.
    """
    name = path_or_uri.replace("\\", "/").rsplit("/", 1)[-1]
    if not name or name in (".", "..") or "\0" in name:
        raise InvalidTableError("Table metadata names no file.", path=path_or_uri)
    return name


def check_file_name(name: str) -> str:
    """Return ``name`` if it is a file's name without a folder. Raises InvalidTableError otherwise."""
    if find_file_name(name) != name:
        raise InvalidTableError("A file must be named without its folder.", path=name)
    return name


# Partition paths -----------------------------------------------------------------------------------------------------

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
LEGACY_DEFAULT_PARTITION = "default"

_ESCAPED = frozenset(chr(code) for code in (*range(0x01, 0x20), 0x7F)) | frozenset("\"#%'*/:=?\\{[]^")
_HEX_PAIR = re.compile(r"%([0-9A-Fa-f]{2})")


def escape_partition_value(value: str) -> str:
    r"""Encode a partition value as Hudi does if url-encoding is on (Hudi PartitionPathEncodeUtils.escapePathName).

    Control characters and ``" # % ' * / : = ? \ { [ ] ^`` become ``%XX`` in upper-case hex; blanks and characters
    outside ASCII stay.
    """
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in value)


def unescape_partition_value(text: str) -> str:
    """Undo ``escape_partition_value``; a ``%`` without two hex digits after it stays."""
    return _HEX_PAIR.sub(lambda match: chr(int(match[1], 16)), text)


def split_partition_path(
    path: str, fields: tuple[str, ...], *, legacy_default: bool = False, whole: bool = False, hive_style: bool = False
) -> tuple[str | None, ...] | None:
    """Return the text of each partition field in a partition path, as Hudi's Spark reader does.

    If the path has one segment for each field, the text is the part of the segment after its first ``=``, or the whole
    segment without ``=``, and ``%XX`` is decoded. If there is one field and several segments (a value with ``/``, a
    date ``2026/01/31``), the text is the whole path. If there are several hive-style fields, the text of a field
    extends to the next ``field=``. In these two cases ``%XX`` is not decoded. ``__HIVE_DEFAULT_PARTITION__`` is None.

    Fields are in path order; without fields the result is ``()``. It is None if the path does not match the fields.
    With ``legacy_default``, ``default`` is null, too: Hudi wrote it before 0.12 and does not upgrade tables that
    contain it past version 4, so from version 6 on, the rows of a partition called ``default`` have the value
    ``default``. With ``whole``, segments are returned unchanged if the path has one for each field, in ``hive_style``
    without ``field=``.
    """
    if not fields:
        return ()
    segments = path.split("/")
    if len(segments) == len(fields):
        texts = segments if whole else [unescape_partition_value(each.split("=", 1)[-1]) for each in segments]
        if whole and hive_style:
            texts = [each.removeprefix(f"{field}=") for each, field in zip(segments, fields, strict=True)]
    elif len(fields) == 1:
        texts = [path.removeprefix(f"{fields[0]}=")]
    else:
        texts = _split_hive_style(segments, fields)
        if len(texts) != len(fields):
            return None
    nulls = (DEFAULT_PARTITION, LEGACY_DEFAULT_PARTITION) if legacy_default else (DEFAULT_PARTITION,)
    return tuple(None if text in nulls else text for text in texts)


def _split_hive_style(segments: list[str], fields: tuple[str, ...]) -> list[str]:
    """Join the segments of each ``field=``; the result is too short if a field is missing or out of order."""
    texts: list[str] = []
    for segment in segments:
        if len(texts) < len(fields) and segment.startswith(f"{fields[len(texts)]}="):
            texts.append(segment.partition("=")[2])
        elif texts:
            texts[-1] += f"/{segment}"
        else:
            return []
    return texts
