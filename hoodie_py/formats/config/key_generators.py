"""Names of key generators: classes, and the corresponding types in properties (Hudi ``KeyGeneratorType``)."""

from __future__ import annotations

_KEYGEN = "org.apache.hudi.keygen"
CLASS_OF_TYPE = {
    "SIMPLE": f"{_KEYGEN}.SimpleKeyGenerator",
    "SIMPLE_AVRO": f"{_KEYGEN}.SimpleAvroKeyGenerator",
    "COMPLEX": f"{_KEYGEN}.ComplexKeyGenerator",
    "COMPLEX_AVRO": f"{_KEYGEN}.ComplexAvroKeyGenerator",
    "TIMESTAMP": f"{_KEYGEN}.TimestampBasedKeyGenerator",
    "TIMESTAMP_AVRO": f"{_KEYGEN}.TimestampBasedAvroKeyGenerator",
    "CUSTOM": f"{_KEYGEN}.CustomKeyGenerator",
    "CUSTOM_AVRO": f"{_KEYGEN}.CustomAvroKeyGenerator",
    "NON_PARTITION": f"{_KEYGEN}.NonpartitionedKeyGenerator",
    "NON_PARTITION_AVRO": f"{_KEYGEN}.NonpartitionedAvroKeyGenerator",
    "GLOBAL_DELETE": f"{_KEYGEN}.GlobalDeleteKeyGenerator",
    "GLOBAL_DELETE_AVRO": f"{_KEYGEN}.GlobalAvroDeleteKeyGenerator",
    "AUTO_RECORD": f"{_KEYGEN}.AutoRecordGenWrapperKeyGenerator",
    "AUTO_RECORD_AVRO": f"{_KEYGEN}.AutoRecordGenWrapperAvroKeyGenerator",
    "HOODIE_TABLE_METADATA": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "SPARK_SQL": "org.apache.spark.sql.hudi.command.SqlKeyGenerator",
    "SPARK_SQL_UUID": "org.apache.spark.sql.hudi.command.UuidKeyGenerator",
    "SPARK_SQL_MERGE_INTO": "org.apache.spark.sql.hudi.command.MergeIntoKeyGenerator",
}
_TYPE_OF_CLASS = {name: kind for kind, name in CLASS_OF_TYPE.items()}


def find_type(class_name: str) -> str:
    """Return the type of a key generator's class; a user's own class has the type USER_PROVIDED."""
    return _TYPE_OF_CLASS.get(class_name, "USER_PROVIDED")
