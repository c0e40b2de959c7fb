"""Write a table with Java Hudi, for hoodie_py to read and compact: an insert, then an upsert that goes to log files."""

import argparse

from pyspark.sql import SparkSession

OPTIONS = {
    "hoodie.table.name": "java_orders",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "order_id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "updated_at",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.upsert.shuffle.parallelism": "2",
}
COLUMNS = "order_id string, city string, status string, updated_at bigint"
FIRST = [(f"j-{n}", "Oslo", "placed", 1) for n in range(10)]
LATER = [(f"j-{n}", "Oslo", "paid", 2) for n in range(4)] + [("j-9", "Oslo", "too late", 0)]

parser = argparse.ArgumentParser(description="Write a table with Java Hudi.")
parser.add_argument("--table", required=True, help="place of the table: s3a://... or a path")
parser.add_argument("--endpoint-url", help="of an S3-compatible server; credentials come from AWS_* variables")
asked = parser.parse_args()

builder = SparkSession.builder.appName("java_writer")
for key, value in {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    **({"spark.hadoop.fs.s3a.endpoint": asked.endpoint_url} if asked.endpoint_url else {}),
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
for mode, rows in (("overwrite", FIRST), ("append", LATER)):
    spark.createDataFrame(rows, COLUMNS).write.format("hudi").options(**OPTIONS).mode(mode).save(asked.table)
print(f"Java Hudi wrote {asked.table}")
spark.stop()
