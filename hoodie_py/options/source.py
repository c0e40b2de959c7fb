"""Options of writes through a data source (Java Hudi DataSourceWriteOptions, HoodieWriteConfig).

They say what to write, and how to create the table if it does not exist. Java has several names for most of them;
messages show the first one.
"""

from __future__ import annotations

from hoodie_py.formats.config import table_config as keys
from hoodie_py.options.parse import Choice, Flag, Number, Option, Text

OPERATION = Text("hoodie.datasource.write.operation")
RECREATE = Flag("hoodie_py.write.recreate", default=False)  # mode "overwrite" creates the table anew, as in Java

# What the table is
TABLE_NAME = (keys.NAME, "hoodie.datasource.write.table.name")
TABLE_TYPE = ("hoodie.datasource.write.table.type", "hoodie.datasource.write.storage.type", keys.TYPE)
TABLE_VERSION = ("hoodie.write.table.version", keys.VERSION)
RECORD_KEY = ("hoodie.datasource.write.recordkey.field", keys.RECORD_KEY_FIELDS)
ORDERING = (keys.ORDERING_FIELDS, "hoodie.datasource.write.precombine.field", keys.PRECOMBINE_FIELD)
PARTITION_PATH = ("hoodie.datasource.write.partitionpath.field", keys.PARTITION_FIELDS)
RECORD_MERGE_MODE = ("hoodie.write.record.merge.mode", keys.MERGE_MODE)
RECORD_MERGE_STRATEGY = (
    "hoodie.write.record.merge.strategy.id",
    "hoodie.datasource.write.record.merger.strategy",
    keys.MERGE_STRATEGY_ID,
    keys.MERGE_STRATEGY_ID_ALIAS,
)
KEY_GENERATOR_TYPE = ("hoodie.datasource.write.keygenerator.type", keys.KEY_GENERATOR_TYPE)
KEY_GENERATOR_CLASS = ("hoodie.datasource.write.keygenerator.class", keys.KEY_GENERATOR_CLASS)
PAYLOAD = (keys.WRITER_PAYLOAD_CLASS, keys.PAYLOAD_CLASS)

TABLE_PROPERTIES = (
    keys.DATABASE, keys.HIVE_STYLE_PARTITIONING, keys.URL_ENCODE_PARTITIONING, keys.SLASH_SEPARATED_DATES,
    keys.DROP_PARTITION_COLUMNS, keys.POPULATE_META_FIELDS, keys.CDC_ENABLED, keys.CDC_MODE, keys.TIMEZONE,
)  # fmt: skip
"""Table properties that Java copies from the options of a write, besides the ones with the prefixes below."""
TABLE_PROPERTY_PREFIXES = (*keys.TIMESTAMP_KEYGEN_PREFIXES, keys.MERGE_PROPERTY_PREFIX)

# What the mode "overwrite" replaces: all rows, or the partitions of the new rows
OVERWRITE_MODE = Choice("hoodie.datasource.overwrite.mode", ("STATIC", "DYNAMIC"))

# The number of tasks of a distributed write
PARALLELISM = {
    "upsert": Number("hoodie.upsert.shuffle.parallelism", 0),
    "insert": Number("hoodie.insert.shuffle.parallelism", 0),
    "bulk_insert": Number("hoodie.bulkinsert.shuffle.parallelism", 0),
    "delete": Number("hoodie.delete.shuffle.parallelism", 0),
}

# Streams
STREAM_IDENTIFIER = Text("hoodie.datasource.write.streaming.checkpoint.identifier")  # else the query's id
STREAM_CHECKPOINT = "_hudi_streaming_sink_checkpoint"  # in commits' extra metadata: {identifier: batch} as JSON

DESCRIBED = (
    TABLE_NAME, TABLE_TYPE, TABLE_VERSION, RECORD_KEY, ORDERING, PARTITION_PATH, RECORD_MERGE_MODE,
    RECORD_MERGE_STRATEGY, KEY_GENERATOR_TYPE, KEY_GENERATOR_CLASS, PAYLOAD,
)  # fmt: skip
OPTIONS: tuple[Option, ...] = (
    OPERATION, RECREATE, OVERWRITE_MODE, STREAM_IDENTIFIER, *PARALLELISM.values(),
    *(Text(name) for names in DESCRIBED for name in names),
)  # fmt: skip

# Table properties that a user may set for a new table (Java Hudi HoodieTableConfig)
_FILE_FORMATS = ("PARQUET",)
_OTHER_FORMATS = ("ORC", "HFILE", "LANCE", "VORTEX")
_FLAGS = (
    keys.DROP_PARTITION_COLUMNS, keys.HIVE_STYLE_PARTITIONING, keys.URL_ENCODE_PARTITIONING, keys.SLASH_SEPARATED_DATES,
    keys.CDC_ENABLED, keys.MULTIPLE_BASE_FORMATS, keys.PARTITION_METAFILE_BASE_FORMAT,
)  # fmt: skip
OF_NEW_TABLES: tuple[Option, ...] = (
    Flag(keys.POPULATE_META_FIELDS, default=True),
    *(Flag(key, default=False) for key in _FLAGS),
    Choice(keys.CDC_MODE, keys.CDC_MODES),
    Choice(keys.BASE_FILE_FORMAT, _FILE_FORMATS, ("hoodie.table.ro.file.format",), _OTHER_FORMATS),
    Choice("hoodie.base.file.format", _FILE_FORMATS, unhandled=_OTHER_FORMATS),  # for writes
    Text(keys.DATABASE),
    Text(keys.TIMEZONE),
)
