"""Keys in the footer of a base file, apart from the writer, so that readers need not import what writing needs."""

from __future__ import annotations

BLOOM_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
AVRO_SCHEMA_KEY = "parquet.avro.schema"
SPARK_VERSION_KEY = "org.apache.spark.version"
