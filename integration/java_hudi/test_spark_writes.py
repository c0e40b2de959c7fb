"""Spark writes by this package, Java Hudi reads and goes on writing, and back again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.spark import write
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import SCHEMA, Kind, Lake, Row, make_row

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

KINDS = [Kind(9, True, False), Kind(8, True, False, merge_on_read=False), Kind(6, False, False)]


class SparkLake(Lake):
    """A table that this package writes to by Spark, in both ways in turn."""

    def put(self, spark: Any, rows: Iterable[Row], operation: str = "upsert", *, direct: bool) -> None:
        """Write rows, and note what that must do."""
        given = list(rows)
        df = spark.createDataFrame(pa.Table.from_pylist(given, SCHEMA))
        options = {**self.kind.write_options, "hoodie.datasource.write.operation": operation}
        if direct:
            assert write(df, str(self.path), **options).instant is not None
        else:
            df.write.format("hoodie").mode("append").options(**options).save(str(self.path))
        self.note(given, operation)


@pytest.mark.classic
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=str(kind), marks=() if kind.version == 9 else pytest.mark.thorough) for kind in KINDS],
)
def test_java_reads_and_upserts_what_spark_wrote(java: JavaSession, spark: Any, kind: Kind, tmp_path: Path) -> None:
    lake = SparkLake(java, tmp_path / "table", kind)
    lake.put(spark, [make_row(number) for number in range(24)], direct=kind.version != 8)
    lake.put(spark, [make_row(number, 3, name="spark") for number in range(4, 30, 2)], direct=True)
    lake.check()
    lake.change(5)
    lake.write([make_row(number, 6, name="bloom") for number in range(2, 30, 3)], hoodie__index__type="BLOOM")
    lake.check()
    lake.put(spark, [make_row(number, 7, name="again") for number in range(0, 40, 5)], direct=False)
    lake.put(spark, [make_row(number, 8) for number in range(1, 9)], "delete", direct=True)
    lake.check()
    lake.change(9)
    lake.check()
