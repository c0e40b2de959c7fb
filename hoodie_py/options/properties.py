"""Table properties that a user may set for a new table, with their kinds (Java Hudi HoodieTableConfig)."""

from __future__ import annotations

from hoodie_py.formats.config import table_config as keys
from hoodie_py.options.parse import Choice, Flag, Option, Text

FILE_FORMATS = ("PARQUET",)
OTHER_FORMATS = ("ORC", "HFILE", "LANCE", "VORTEX")

BASE_FILE_FORMAT = Choice(keys.BASE_FILE_FORMAT, FILE_FORMATS, unhandled=OTHER_FORMATS)
WRITTEN_FILE_FORMAT = Choice("hoodie.base.file.format", FILE_FORMATS, unhandled=OTHER_FORMATS)  # for writes

OPTIONS: tuple[Option, ...] = (
    Flag(keys.POPULATE_META_FIELDS, default=True),
    Flag(keys.DROP_PARTITION_COLUMNS, default=False),
    Flag(keys.HIVE_STYLE_PARTITIONING, default=False),
    Flag(keys.URL_ENCODE_PARTITIONING, default=False),
    Flag(keys.SLASH_SEPARATED_DATES, default=False),
    Flag(keys.CDC_ENABLED, default=False),
    Flag(keys.MULTIPLE_BASE_FORMATS, default=False),
    Flag(keys.PARTITION_METAFILE_BASE_FORMAT, default=False),
    Choice(keys.CDC_MODE, keys.CDC_MODES),
    BASE_FILE_FORMAT,
    WRITTEN_FILE_FORMAT,
    Text(keys.DATABASE),
    Text(keys.TIMEZONE),
)
