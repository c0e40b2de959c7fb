"""Options of rows on their way in: keys, partitions, schemas (Java Hudi KeyGeneratorOptions, HoodieWriteConfig)."""

from __future__ import annotations

# A new table
PARTITION_EXTRACTOR = "hoodie.table.partition_extractor_class"  # for catalogs

# Keys and partition paths
COMPLEX_KEY_VALUE_ONLY = "hoodie.write.complex.keygen.new.encoding"  # below table version 9: one key field, bare value
COMPLEX_KEY_CHECK = "hoodie.write.complex.keygen.validation.enable"  # below table version 9: refuse one key field
CONSISTENT_TIMESTAMPS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"

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
NULL_FOR_MISSING = "hoodie.write.set.null.for.missing.columns"
RECONCILE_SCHEMA = "hoodie.datasource.write.reconcile.schema"
