r"""Checks that ``hoodie.properties`` is whole.

The file stores neither its length nor a checksum of its content (Hudi's checksum covers only two names). A file that
was cut off reads as a file with fewer properties, and the defaults of the missing ones give other rows. The rules:

* Java ends every line. If the last line has no end, the file was cut off.
* Java always writes the keys ``ALWAYS`` (a checksum from version 3 on), from table version 8 on also ``SINCE_8``
  (``HoodieTableMetaClient.TableBuilder``, the upgrade handlers, ``HoodieTableConfig.create`` and ``storeProperties``).
* Some properties are always written together. Spark's writer and the streamer write time zone, meta fields and base
  format at once. A key generator that needs partition fields is stored with them. A partial update mode that needs a
  placeholder is stored with it.
* Java writes in the order of its hash map, in which the ordering fields directly follow the timeline's path. So a file
  whose last property is that path was cut off, if its merge mode uses ordering values and it has no ordering fields.
* This package writes a first line that promises a last line. Both are comments. Java drops them when it rewrites the
  file.

One loss cannot be detected: a user's own merge property on the last line of a file that Java wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import UNAVAILABLE_VALUE, MergeMode
from hoodie_py.formats.config.table_config import TableConfig

_FIRST_LINE = b"#Written by hoodie_py: a whole file has a last line that says so"
_LAST_LINE = b"#The properties end here"
_FIRST_VERSION_WITH_MERGE_MODE = 8
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")

ALWAYS = (keys.NAME, keys.TYPE, keys.VERSION, keys.TIMELINE_LAYOUT, keys.CHECKSUM, keys.ARCHIVE_FOLDER)
_FIRST_VERSION_WITH_CHECKSUM = 3
SINCE_8 = (keys.TIMELINE_PATH, keys.MERGE_MODE)
# Keys that are always written together with a key.
_TOGETHER = {keys.TIMEZONE: (keys.POPULATE_META_FIELDS, keys.BASE_FILE_FORMAT)}
_PARTITIONING = frozenset({"SIMPLE", "TIMESTAMP", "CUSTOM"})  # key generators that need partition fields


def parse_whole_table_config(data: bytes) -> TableConfig:
    """Parse a ``hoodie.properties`` file and check that it is whole.

    Raises:
        InvalidTableError: the file was cut off; or as for ``TableConfig.from_bytes``.
        UnsupportedFeatureError: as for ``TableConfig.from_bytes``.
    """
    is_sealed = _FIRST_LINE in data
    if is_sealed and b"\n" + _LAST_LINE not in data:
        raise _make_cut_off_error("its last line is missing")
    if not is_sealed and not data.endswith((b"\n", b"\r")):
        raise _make_cut_off_error("its last line has no end")
    config = TableConfig.from_bytes(data)
    if not is_sealed:
        _check_whole(config)
    return config


def seal_properties(data: bytes) -> bytes:
    """Add the first and last line that mark a whole file to a properties file."""
    lines = [line for line in _LINE.findall(data) if line.rstrip(b"\r\n") not in (_FIRST_LINE, _LAST_LINE)]
    text = b"".join(lines)
    end = b"" if not text or text.endswith((b"\n", b"\r")) else b"\n"
    return b"".join((_FIRST_LINE, b"\n", text, end, _LAST_LINE, b"\n"))


def _check_whole(config: TableConfig) -> None:
    properties = config.properties
    missing = next((key for key in _list_expected_keys(config) if key not in properties), None)
    if missing is not None:
        raise _make_cut_off_error(f"{missing} is missing, which Hudi always writes for such a table")
    by_ordering = config.merge_mode is not MergeMode.COMMIT_TIME_ORDERING
    if by_ordering and not config.ordering_fields and list(properties)[-1:] == [keys.TIMELINE_PATH]:
        raise _make_cut_off_error(f"{keys.ORDERING_FIELDS} is missing, which Hudi writes next")


def _list_expected_keys(config: TableConfig) -> Iterator[str]:
    old = config.version < _FIRST_VERSION_WITH_CHECKSUM
    yield from (key for key in ALWAYS if key != keys.CHECKSUM or not old)
    if config.version >= _FIRST_VERSION_WITH_MERGE_MODE:
        yield from SINCE_8
    for key, others in _TOGETHER.items():
        if key in config.properties:
            yield from others
    if config.key_generator in _PARTITIONING:
        yield keys.PARTITION_FIELDS
    if config.partial_update_mode == "FILL_UNAVAILABLE":
        yield keys.MERGE_PROPERTY_PREFIX + UNAVAILABLE_VALUE


def _make_cut_off_error(what: str) -> InvalidTableError:
    return InvalidTableError(
        f"The properties file is not whole: {what}.",
        hint="Restore it, or its backup; if it was edited by hand, put the line back.",
    )
