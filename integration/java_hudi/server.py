"""Real Java Hudi behind a pipe: runs under PySpark 3.5 in an environment of its own, and imports nothing of hoodie_py.

One request a line on stdin, ``{"command": name, ...arguments}``; one answer a line on stdout, ``{"ok": value}`` or
``{"error": text}``. Rows travel as Parquet files, so that types and nulls survive. Whatever Java prints goes to stderr.
Arguments of the process: the Hudi bundle's jar, a folder for the warehouse, and further settings of Spark as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import ArrayType, StructField, StructType

_LONGEST_ERROR = 6000
_LONGEST_CAUSES = 2000


def start(jar: str, folder: str, more: dict[str, str]) -> SparkSession:
    # Short runs: the first compiler alone starts faster than it would ever pay to optimise.
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -Xmn512m -XX:ReservedCodeCacheSize=256m -Duser.timezone=UTC"
    java += " -Dderby.system.home=" + folder
    settings = {
        "spark.jars": jar,
        "spark.driver.extraJavaOptions": java,
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        # Where the machine is so busy that a heartbeat is late, nothing has failed.
        "spark.executor.heartbeatInterval": "600s",
        "spark.network.timeout": "3600s",
    }
    builder = SparkSession.builder.master("local[2]").appName("java hudi")
    for name, value in (settings | more).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Server:
    """The commands, one method each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def write(self, table: str, rows: str, mode: str, options: dict[str, str], types: dict[str, str]) -> None:
        """Write the rows of a Parquet file as the options say; ``types`` are logical types of columns."""
        frame = self._spark.read.parquet(rows)
        if types:
            schema = StructType([_name_type(field, types.get(field.name)) for field in frame.schema])
            frame = self._spark.createDataFrame(frame.collect(), schema)
        frame.write.format("hudi").options(**options).mode(mode).save(table)

    def read(self, table: str, into: str, options: dict[str, str], where: str | None) -> None:
        """Read a table afresh (no cached file index) into a folder of Parquet files."""
        self._spark.catalog.clearCache()
        frame = self._spark.read.format("hudi").options(**options).load(table)
        if where:
            frame = frame.where(where)
        frame.coalesce(1).write.mode("overwrite").parquet(into)

    def read_together(self, table: str, into: str, reads: list[dict[str, Any]]) -> None:
        """Read a table several times in one job into one folder; column ``read`` tells which read gave a row."""
        self._spark.catalog.clearCache()
        parts = []
        for number, each in enumerate(reads):
            frame = self._spark.read.format("hudi").options(**each["options"]).load(table)
            kept = frame if each["where"] is None else frame.where(each["where"])
            parts.append(kept.withColumn("read", lit(number)))
        reduce(DataFrame.unionAll, parts).coalesce(1).write.mode("overwrite").parquet(into)

    def find(self, table: str, filters: list[str], column: str, options: dict[str, str]) -> list[list[Any]]:
        """Read the values of one column for each of some filters, all in one job."""
        self._spark.catalog.clearCache()
        frame = self._spark.read.format("hudi").options(**options).load(table)
        parts = [frame.where(where).select(lit(n).alias("n"), column) for n, where in enumerate(filters)]
        found: list[list[Any]] = [[] for _ in filters]
        for number, value in reduce(DataFrame.unionAll, parts).collect():
            found[number].append(value)
        return found

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Run one statement and return its rows."""
        return [json.loads(row) for row in self._spark.sql(text).toJSON().collect()]

    def call(self, table: str, procedure: str, arguments: str) -> list[dict[str, Any]]:
        """Call a procedure that takes a table's name and no path."""
        self._spark.sql("drop table if exists called")
        self._spark.sql(f"create table called using hudi location '{table}'")
        try:
            return self.sql(f"call {procedure}(table => 'called'{arguments})")
        finally:
            self._spark.sql("drop table called")

    def configure(self, settings: dict[str, str | None]) -> None:
        """Set what the session's writers and procedures take from the session; None takes a setting away."""
        for name, value in settings.items():
            if value is None:
                self._spark.conf.unset(name)
            else:
                self._spark.conf.set(name, value)

    def version(self) -> dict[str, str]:
        """What runs here."""
        return {"spark": self._spark.version, "java": self._spark._jvm.System.getProperty("java.version")}


def _shorten(text: str) -> str:
    """Keep the beginning of an error, and what it says of its causes: the first one is the last of them."""
    causes = "\n".join(line for line in text[_LONGEST_ERROR:].splitlines() if line.startswith("Caused by"))
    return text[:_LONGEST_ERROR] + ("\n" + causes)[-_LONGEST_CAUSES:]


def _name_type(field: StructField, name: str | None) -> StructField:
    """Name a column's logical type as Hudi's writer expects; Java wants no nulls in vectors and variants."""
    if name is None:
        return field
    kind = field.dataType
    if name.startswith("VECTOR"):
        kind = ArrayType(kind.elementType, False)
    if name == "VARIANT":
        kind = StructType([StructField(part.name, part.dataType, False) for part in kind])
    return StructField(field.name, kind, field.nullable, {"hudi_type": name})


def main(jar: str, folder: str, more: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the Java process inherits stdout, and prints there
    spark = start(jar, folder, json.loads(more))
    server = Server(spark, Path(folder))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(server, request.pop("command"))(**request)}
        except Exception as error:
            answer = {"error": _shorten(f"{type(error).__name__}: {error}")}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    spark.stop()
    shutil.rmtree(Path(folder, "warehouse"), ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
