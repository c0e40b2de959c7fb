"""Options for incoming rows: keys, partition paths, schemas (Java Hudi KeyGeneratorOptions, HoodieWriteConfig)."""

from __future__ import annotations

from hoodie_py.formats.config.table_config import TIMESTAMP_KEYGEN_PREFIXES
from hoodie_py.options.parse import Flag, Option, Text

# Keys and partition paths
# Below table version 9, complex keys of one field: whether a key is the bare value, and whether to refuse such keys.
COMPLEX_KEY_VALUE_ONLY = Flag("hoodie.write.complex.keygen.new.encoding", default=False)
COMPLEX_KEY_CHECK = Flag("hoodie.write.complex.keygen.validation.enable", default=True)
CONSISTENT_TIMESTAMPS = Flag("hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", default=False)

# Settings of the timestamp key generator, below TIMESTAMP_KEYGEN_PREFIXES
TIMESTAMP_TYPE = "timestamp.type"
TIMESTAMP_UNIT = "timestamp.scalar.time.unit"
INPUT_DATE_FORMAT = "input.dateformat"
INPUT_DATE_FORMAT_DELIMITER = "input.dateformat.list.delimiter.regex"
INPUT_ZONE = "input.timezone"
OUTPUT_DATE_FORMAT = "output.dateformat"
OUTPUT_ZONE = "output.timezone"
BOTH_ZONES = "timezone"
DATE_PARSER = "datetime.parser.class"

# Columns that the rows lack
NULL_FOR_MISSING = Flag("hoodie.write.set.null.for.missing.columns", default=False)
RECONCILE_SCHEMA = Flag("hoodie.datasource.write.reconcile.schema", default=False)

_TIMESTAMP_SETTINGS = (
    TIMESTAMP_TYPE, TIMESTAMP_UNIT, INPUT_DATE_FORMAT, INPUT_DATE_FORMAT_DELIMITER, INPUT_ZONE, OUTPUT_DATE_FORMAT,
    OUTPUT_ZONE, BOTH_ZONES, DATE_PARSER,
)  # fmt: skip
OPTIONS: tuple[Option, ...] = (
    COMPLEX_KEY_VALUE_ONLY, COMPLEX_KEY_CHECK, CONSISTENT_TIMESTAMPS, NULL_FOR_MISSING, RECONCILE_SCHEMA,
    *(Text(prefix + name) for prefix in TIMESTAMP_KEYGEN_PREFIXES for name in _TIMESTAMP_SETTINGS),
)  # fmt: skip
