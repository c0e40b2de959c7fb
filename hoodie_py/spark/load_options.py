"""Parses the options of ``spark.read.format("hoodie")``; Java: ``DataSourceReadOptions``.

Spark lower-cases option names and turns values into text. Options of this package are ``columns``, ``storage_options``
(a JSON object, because single keys would lose case and type), ``timezone``, ``integrity``, ``batch_rows``,
``memory_limit`` and ``maxCommitsPerTrigger``. Streams have two more limits, which are Spark's. All other options are
Java Hudi's (``hoodie.datasource.query.type``, ``as.of.instant``, ...), which reads and writes check themselves
(``options.check``), and Hadoop's ``fs.s3a.*``. Options that do not concern a read are ignored, as in Java Hudi, unless
they look like a misspelt name.
"""

from __future__ import annotations

import difflib
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.errors import HoodieWarning, InvalidQueryError
from hoodie_py.options.parse import Number, Size
from hoodie_py.options.read import AS_OF_INSTANT, READ_PATHS
from hoodie_py.spark.process import is_connect
from hoodie_py.table.filter.sql_settings import UNKNOWN_SESSION, SqlSettings

COLUMNS = "columns"
STORAGE_OPTIONS = "storage_options"
TIMEZONE = "timezone"
INTEGRITY = "integrity"
BATCH_ROWS = Number("batch_rows", 0, least=1)
MEMORY_LIMIT = Size("memory_limit", 0, least=1)
MAX_COMMITS = Number("maxCommitsPerTrigger", 0, least=1, aliases=("maxcommitspertrigger",), unit="commits")
MAX_FILES = Number("maxFilesPerTrigger", 0, least=1, aliases=("maxfilespertrigger",), unit="files")
MAX_BYTES = Size("maxBytesPerTrigger", 0, least=1, aliases=("maxbytespertrigger",))
PATH = "path"
# A Python data source does not learn the location of a catalog table whose columns do not carry it.
_PATH_HINT = (
    'Write .load("/path/of/the/table"). A table of Spark\'s catalog is made without columns: DROP TABLE t, which '
    "leaves the files where they are, then CREATE TABLE t USING hoodie LOCATION '/path/of/the/table'."
)
_LIMITS = {name.lower(): name for name in (MAX_COMMITS, MAX_FILES, MAX_BYTES)}
_OURS = (COLUMNS, STORAGE_OPTIONS, TIMEZONE, INTEGRITY, BATCH_ROWS, MEMORY_LIMIT, *_LIMITS)
_HADOOP = "spark.hadoop."
_S3A = "fs.s3a."
_OTHER_CREDENTIALS = "Give the load its storage_options, or set the AWS_* variables where the server runs."
_SECRET = re.compile(r"spark\.hadoop\.fs\.s3a\.(bucket\.[^.]+\.)?secret\.key", re.IGNORECASE)
_S3_URI = re.compile(r"s3[an]?://", re.IGNORECASE)
_SIMILAR = 0.8


@dataclass(frozen=True, slots=True, repr=False)
class LoadOptions:
    """The options of one load; its repr shows no storage options.

    ``integrity``: "default" or "strict". ``hoodie``: all options that are not this package's; they may be Java Hudi's.
    ``limits``: the limits of a stream. ``sql``: the SQL settings of the session, for filters; Spark passes them to no
    data source, so only functions that are given the session know them. None means all columns, the latest instant, the
    default number.
    """

    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    as_of: str | None = None
    timezone: str | None = None
    integrity: str = "default"
    batch_rows: int | None = None
    memory_limit: int | None = None
    hoodie: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    sql: SqlSettings = UNKNOWN_SESSION

    @classmethod
    def parse(cls, options: Mapping[str, str], session: Mapping[str, str]) -> LoadOptions:
        """Parse the options of a load.

        ``session``: the session's ``spark.hadoop.fs.s3a.*`` settings, used for S3 tables if ``options`` has none.

        Raises:
            InvalidQueryError: there is no path or more than one, a value is not valid, or a name is misspelt.
        """
        given = {name.lower(): value for name, value in options.items()}
        _check_names(given)
        path = _get_path(given)
        s3a = {name: value for name, value in given.items() if name.removeprefix(_HADOOP).startswith(_S3A)}
        storage = {**s3a, **_parse_json_object(given.get(STORAGE_OPTIONS))}
        if not storage and _S3_URI.match(path):
            storage = dict(session)
        return cls(
            path=path,
            storage_options=storage,
            columns=parse_columns(given.get(COLUMNS)),
            as_of=given.get(AS_OF_INSTANT),
            timezone=given.get(TIMEZONE) or None,
            integrity=given.get(INTEGRITY) or "default",
            batch_rows=BATCH_ROWS.read_given(given),
            memory_limit=MEMORY_LIMIT.read_given(given),
            hoodie={name: value for name, value in given.items() if name not in {*_OURS, PATH} and name not in s3a},
            limits={name: value for name, value in given.items() if name in _LIMITS},
        )

    def __repr__(self) -> str:
        return f"LoadOptions(path={self.path!r}, columns={self.columns!r}, as_of={self.as_of!r})"


def to_option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options with their values as text, as Spark's ``option`` does, by lower-case name, without None.

    ``storage_options`` may be a mapping.
    """
    return {name.lower(): _to_text(name.lower(), value) for name, value in options.items() if value is not None}


def _to_text(name: str, value: Any) -> str:
    if name == STORAGE_OPTIONS and not isinstance(value, str):
        return json.dumps(dict(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def pick_s3_settings(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the S3 settings (``spark.hadoop.fs.s3a.*``) among a session's settings.

    The ``vectored`` settings are left out: Spark 4 sets them in every session, and only Hadoop's own reader uses them.
    """
    wanted, own = _HADOOP + _S3A, _HADOOP + _S3A + "vectored."
    return {
        name: value for name, value in settings if name.lower().startswith(wanted) and not name.lower().startswith(own)
    }


def parse_columns(text: str | None) -> tuple[str, ...] | None:
    """Parse ``a, b`` or a JSON list of names; None for an empty text.

    Raises:
        InvalidQueryError: the JSON is not valid.
    """
    if text is None or not text.strip():
        return None
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except ValueError:
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidQueryError(f"The option {COLUMNS} is no list of names.", hint='Write a,b or ["a", "b"].')
        return tuple(names)
    return tuple(name.strip() for name in text.split(","))


def _get_path(given: Mapping[str, str]) -> str:
    path = given.get(PATH)
    if given.get("paths") or given.get(READ_PATHS):
        raise InvalidQueryError("Several paths were given; a load reads one table.", hint="Load each and union them.")
    if not path or not path.strip():
        raise InvalidQueryError("No path was given.", hint=_PATH_HINT)
    return path


def _check_names(given: Mapping[str, str]) -> None:
    for name in given:
        if name in _OURS or "." in name:
            continue
        meant = difflib.get_close_matches(name, _OURS, 1, _SIMILAR)
        if meant:
            raise InvalidQueryError(
                f"Unknown option {name!r}.", hint=f"Did you mean {_LIMITS.get(meant[0], meant[0])!r}?"
            )


def _parse_json_object(text: str | None) -> dict[str, Any]:
    if text is None or not text.strip():
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):  # the text may hold credentials, so it is not shown
        raise InvalidQueryError(f"The option {STORAGE_OPTIONS} is not a JSON object.", hint="Pass json.dumps({...}).")
    return value


def find_names(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the table's names of some columns. Case matters only if names differ in nothing else.

    Raises:
        InvalidQueryError: an unknown column, or a column named twice.
    """
    found: list[str] = []
    for name in wanted:
        alike = [name] if name in known else [other for other in known if other.lower() == name.lower()]
        if len(alike) != 1:
            what = f"Several columns are called {name!r}" if alike else f"Unknown column {name!r}"
            raise InvalidQueryError(f"{what}.", hint=f"The table has: {', '.join(known)}.")
        if alike[0] in found:
            raise InvalidQueryError(f"Column {name!r} is asked for twice.")
        found.append(alike[0])
    return found


def read_s3_settings(spark: Any) -> dict[str, str]:
    """Return the session's S3 settings.

    A classic session has more of them in its SparkContext's configuration. A Connect server does not reveal
    credentials, so a warning is given if it has any.
    """
    settings = dict(spark.conf.getAll)
    if is_connect(spark):
        _warn_of_hidden_credentials(spark)
    else:
        settings = {**dict(spark.sparkContext.getConf().getAll()), **settings}
    return pick_s3_settings(settings.items())


def _warn_of_hidden_credentials(spark: Any) -> None:
    # Reading one name is not enough: Spark 4.3 answers "redacted" even for a secret that nobody has set.
    for row in spark.sql("SET").collect():
        if _SECRET.fullmatch(row["key"]):
            hidden = f"Reads of this format do not have {row['key']}: a Connect server does not tell it."
            warnings.warn(HoodieWarning(f"{hidden} {_OTHER_CREDENTIALS}"), stacklevel=4)
