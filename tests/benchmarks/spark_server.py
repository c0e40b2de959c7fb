"""A Spark session behind a pipe; runs under PySpark 3.5 as well as 4, and imports nothing of the other modules here.

Arguments: the Spark master and, where Java Hudi reads, the jar of its bundle. One request a line on stdin,
``{"reader", "query", "table", "path", "files"}``, one answer a line on stdout: ``{"ok": {"wall", "values"}}`` or
``{"error": text}``. Whatever Spark prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

NARROW = ("i1", "l2", "amt")
NARROW_SUMS = {"si1": "sum(i1)", "sl2": "sum(l2)", "samt": "sum(amt)"}
SUMS = {
    "mor_small": {
        **NARROW_SUMS,
        "n": "count(*)",
        "cname": "sum(crc32(name))",
        "sts": "sum(ts - 1700000000000)",
        "ntags": "sum(if(tags is null, -1, size(tags)))",
    },
    "mor_late": {
        **NARROW_SUMS,
        "n": "count(*)",
        "sts": "sum(ts)",
        "sbig": "sum(big)",
        "cname": "sum(crc32(name))",
        "ntags": "sum(if(tags is null, 0, size(tags)))",
        "sma": "sum(m['a'])",
        "ssa": "sum(st.a)",
        "lraw": "sum(length(raw))",
    },
}
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
}
JAVA_HUDI = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}


def start(master: str, jar: str | None) -> SparkSession:
    """Start the session."""
    settings = SETTINGS if jar is None else {**SETTINGS, **JAVA_HUDI, "spark.jars": jar}
    builder = SparkSession.builder.master(master).appName("benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if jar is None:
        start_python(session)
    return session


def start_python(session: SparkSession) -> None:
    """Start the session's Python workers: Spark keeps them, and starts them when it first runs Python."""
    tasks = session.sparkContext.defaultParallelism
    session.range(0, tasks, 1, tasks).mapInArrow(lambda batches: batches, session.range(1).schema).collect()


def frame(spark: SparkSession, request: dict[str, Any], columns: list[str] | None) -> DataFrame:
    """Open the table with the request's reader; ``columns`` is what the query needs, for readers that can be told."""
    if request["reader"] == "java":
        return spark.read.format("hudi").load(request["path"])
    if request["reader"] == "format":
        return spark.read.format("hoodie").load(request["path"])
    if request["reader"] == "parquet":
        return spark.read.parquet(*request["files"])
    import hoodie_py.spark

    return hoodie_py.spark.read(spark, request["path"], columns=columns)


def run(spark: SparkSession, request: dict[str, Any]) -> dict[str, str]:
    """Run one query from opening the table on, and return the values it gave, by name."""
    query = request["query"]
    if query == "compact":
        return compact(spark, request)
    if query == "cluster":
        return cluster(spark, request)
    if query == "write":
        return write(spark, request)
    if query == "noop":
        frame(spark, request, None).write.format("noop").mode("overwrite").save()
        return {}
    if query == "count":
        return {"n": str(frame(spark, request, [NARROW[0]]).count())}
    sums = NARROW_SUMS if query == "narrow" else SUMS[request["table"]]
    opened = frame(spark, request, list(NARROW) if query == "narrow" else None)
    (row,) = opened.selectExpr(*[f"{text} as {name}" for name, text in sums.items()]).collect()
    return {name: str(row[name]) for name in sums}


def write(spark: SparkSession, request: dict[str, Any]) -> dict[str, str]:
    """Write the rows of Parquet files with the request's operation."""
    rows, operation = spark.read.parquet(*request["files"]), request["operation"]
    if request["reader"] == "java":
        options = {**request["settings"], "hoodie.datasource.write.operation": operation}
        rows.write.format("hudi").options(**options).mode("append").save(request["path"])
        return {}
    import hoodie_py.spark

    hoodie_py.spark.write(rows, request["path"], operation=operation, options=request["settings"])
    return {}


def compact(spark: SparkSession, request: dict[str, Any]) -> dict[str, str]:
    """Plan and run a compaction with the request's codec; Java Hudi's by its own procedures."""
    codec = {"hoodie.parquet.compression.codec": request["codec"]}
    if request["reader"] != "java":
        from hoodie_py import HoodieTable

        result = HoodieTable.open(request["path"]).compact(spark, options=codec)
        return {"n": str(result.rows_written), "groups": str(result.file_groups)}
    keys = {**codec, "hoodie.metadata.enable": "false", "hoodie.compact.inline.max.delta.commits": "1"}
    options = ",".join(f"{key}={value}" for key, value in keys.items())
    for step in ("schedule", "run"):
        done = spark.sql(f"call run_compaction(op => '{step}', path => '{request['path']}', options => '{options}')")
        if not done.collect():
            raise RuntimeError(f"Java Hudi found nothing to {step}")
    return {}


def cluster(spark: SparkSession, request: dict[str, Any]) -> dict[str, str]:
    """Plan and run a clustering with the request's settings; Java Hudi's by its own procedure."""
    settings = request["settings"]
    if request["reader"] != "java":
        from hoodie_py import HoodieTable

        result = HoodieTable.open(request["path"]).cluster(spark, options=settings)
        return {"n": str(result.rows_written)}
    options = ",".join(f"{key}={value}" for key, value in settings.items())
    done = spark.sql(
        f"call run_clustering(op => 'scheduleAndExecute', path => '{request['path']}', options => '{options}')"
    )
    if not done.collect():
        raise RuntimeError("Java Hudi found nothing to cluster")
    return {}


def main() -> int:
    """Answer requests until the pipe ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = start(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    print(json.dumps({"ok": {"spark": spark.version}}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        began = time.monotonic()
        try:
            values = run(spark, request)
            answer: dict[str, Any] = {"ok": {"wall": time.monotonic() - began, "values": values}}
        except Exception as error:  # it goes to the one who asked
            answer = {"error": f"{type(error).__name__}: {str(error)[:3000]}"}
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
