"""What each extra is for, done once with an installed package; ``install_extras`` runs this file in fresh environments.

    python -P extra_uses.py duckdb '{"table": "basic_mor_v9_part", ...}'

The argument behind the extra says where the tables and the servers are. A use prints what it found and ends with an
error if that is not what the table holds. Nothing is imported but the package and what the extra installs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROWS = 9  # of both packaged tables
OF_P0 = 5
_MERGER_TESTS = """
import pyarrow as pa
from hoodie_py import RecordMerger
from hoodie_py.testing import RecordMergerTests, local_s3_server


class HighestPrice(RecordMerger):
    strategy_id = "0b1f4a52-7a4f-4b9a-9d0c-5a2b8a5a8f10"

    def merge(self, older, newer, context, props):
        if older.is_delete or newer.is_delete:
            return newer
        before, after = (context.get_value(each, "price") for each in (older, newer))
        return newer if before is None or (after is not None and after > before) else older


class TestHighestPrice(RecordMergerTests):
    merger = HighestPrice
    schema = pa.schema([("ts", pa.int64()), ("price", pa.float64()), ("name", pa.string())])


def test_the_server_answers(local_s3_server):
    assert local_s3_server.uri == "s3://lake"
"""


class WrongAnswerError(Exception):
    """A use found something else than the table holds."""


def expect(found: object, wanted: object, what: str) -> None:
    """Raise if an answer is not the wanted one."""
    if found != wanted:
        raise WrongAnswerError(f"{what}: {found!r}, not {wanted!r}")
    print(f"{what}: {found}")


def _scan(place: Mapping[str, Any]) -> Any:
    from hoodie_py import HoodieTable

    return HoodieTable.open(place["table"]).scan(columns=["id", "part"])


def use_alone(place: Mapping[str, Any]) -> None:
    """Read the table as Arrow, without any extra."""
    expect(_scan(place).to_arrow().num_rows, ROWS, "rows as Arrow")


def _use_store(uri: str, storage_options: Mapping[str, Any]) -> None:
    import pyarrow as pa

    from hoodie_py import HoodieTable

    schema = pa.schema([("id", pa.int64()), ("price", pa.float64())])
    table = HoodieTable.create(uri, schema, record_key="id", storage_options=storage_options)
    table.upsert([{"id": number, "price": 1.0} for number in range(ROWS)])
    read = HoodieTable.open(uri, storage_options).scan(filter="price > 0")
    expect(read.to_arrow().num_rows, ROWS, f"rows written to and read from {uri.partition(':')[0]}")


def _use_named_store(name: str) -> Callable[[Mapping[str, Any]], None]:
    def use(place: Mapping[str, Any]) -> None:
        there = place[name]
        _use_store(f"{there['uri']}/{place['run']}", there["storage_options"])

    return use


def use_lance(place: Mapping[str, Any]) -> None:
    """Read a table whose base files are of Lance."""
    from hoodie_py import HoodieTable

    expect(HoodieTable.open(place["lance_table"]).scan().to_arrow().num_rows, ROWS, "rows of Lance files")


def use_otel(place: Mapping[str, Any]) -> None:
    """Spans go to the program's provider; here to one that keeps their names, as the extra has no SDK."""
    from opentelemetry import trace

    names: list[str] = []

    class Tracer(trace.NoOpTracer):
        def start_span(self, name: str, *arguments: Any, **settings: Any) -> Any:
            names.append(name)
            return super().start_span(name, *arguments, **settings)

    class Provider(trace.NoOpTracerProvider):
        def get_tracer(self, *_: Any, **__: Any) -> Tracer:
            return Tracer()

    trace.set_tracer_provider(Provider())
    expect(_scan(place).to_arrow().num_rows, ROWS, "rows")
    expect(names[:2], ["hoodie_py.scan", "hoodie_py.plan"], "spans")


def use_pandas(place: Mapping[str, Any]) -> None:
    """Read into pandas."""
    frame = _scan(place).to_pandas()
    expect((len(frame), len(frame[frame["part"] == "p0"])), (ROWS, OF_P0), "rows of pandas")


def use_polars(place: Mapping[str, Any]) -> None:
    """Scan with polars, with a condition that reaches the scan."""
    import polars as pl

    lazy = _scan(place).to_polars_lazy()
    counts = [lazy.select(pl.len()), lazy.filter(pl.col("part") == "p0").select(pl.len())]
    expect([each.collect().item() for each in counts], [ROWS, OF_P0], "rows of polars")


def use_duckdb(place: Mapping[str, Any]) -> None:
    """Ask with DuckDB's SQL."""
    connection = _scan(place).to_duckdb("t")
    found = connection.sql("select count(*), count(*) filter (where part = 'p0') from t").fetchall()
    expect(found, [(ROWS, OF_P0)], "rows of DuckDB")


def use_datafusion(place: Mapping[str, Any]) -> None:
    """Ask with DataFusion's SQL."""
    context = _scan(place).to_datafusion("t")
    (batch,) = context.sql("select count(*) as n from t where part = 'p0'").collect()
    expect(batch.to_pydict(), {"n": [OF_P0]}, "rows of DataFusion")


def use_ibis(place: Mapping[str, Any]) -> None:
    """Ask with Ibis, which asks DuckDB."""
    table = _scan(place).to_ibis("t")
    expect(table.filter(table.part == "p0").count().execute(), OF_P0, "rows of Ibis")


def use_ray(place: Mapping[str, Any]) -> None:
    """Read on workers of Ray."""
    import ray

    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, logging_level="ERROR")
    try:
        expect(len(_scan(place).to_ray().take_all()), ROWS, "rows of Ray")
    finally:
        ray.shutdown()


def use_dask(place: Mapping[str, Any]) -> None:
    """Read with Dask."""
    frame = _scan(place).to_dask()
    expect((len(frame), len(frame[frame["part"] == "p0"])), (ROWS, OF_P0), "rows of Dask")


def use_daft(place: Mapping[str, Any]) -> None:
    """Read with Daft."""
    import daft

    expect(_scan(place).to_daft().where(daft.col("part") == "p0").count_rows(), OF_P0, "rows of Daft")


def use_spark(place: Mapping[str, Any]) -> None:
    """Read in a Spark session."""
    from pyspark.sql import SparkSession

    from hoodie_py.spark import register

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    frame = spark.read.format("hoodie").load(place["table"])
    expect((frame.count(), frame.where("part = 'p0'").count()), (ROWS, OF_P0), "rows of Spark")
    spark.stop()


def _use_catalog(place: Mapping[str, Any], kind: str, options: Mapping[str, Any] | None = None) -> None:
    from hoodie_py import HoodieTable, open_catalog

    with open_catalog(kind, place[kind], options=options) as catalog:
        catalog.sync(HoodieTable.open(place["table"]), place["run"], "t")
        expect(catalog.open(f"{place['run']}.t").scan().count(), ROWS, f"rows of the table by its name in {kind}")


def use_hive(place: Mapping[str, Any]) -> None:
    """Register in a Hive Metastore, and open by name."""
    _use_catalog(place, "hive")


def use_glue(place: Mapping[str, Any]) -> None:
    """Register in Glue, as moto plays it, and open by name."""
    _use_catalog(place, "glue", {"region_name": "eu-west-1"})


def use_testing(_: Mapping[str, Any]) -> None:
    """Run a suite for a merger, and a server of S3 that is written to."""
    from hoodie_py.testing import local_s3

    with local_s3() as server:
        _use_store(f"{server.uri}/t", server.storage_options)
    Path("test_own_merger.py").write_text(_MERGER_TESTS)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "test_own_merger.py"], check=False)
    expect(done.returncode, 0, "status of pytest")


USES: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "": use_alone,
    "azure": _use_named_store("azure"),
    "daft": use_daft,
    "dask": use_dask,
    "datafusion": use_datafusion,
    "duckdb": use_duckdb,
    "gcs": _use_named_store("gcs"),
    "glue": use_glue,
    "hive": use_hive,
    "ibis": use_ibis,
    "lance": use_lance,
    "otel": use_otel,
    "pandas": use_pandas,
    "polars": use_polars,
    "ray": use_ray,
    "s3": _use_named_store("s3"),
    "spark": use_spark,
    "testing": use_testing,
}
"""By extra; ``all`` is all of these."""


if __name__ == "__main__":
    USES[sys.argv[1]](json.loads(sys.argv[2]))
