"""The part of ``hoodie demo`` that runs in PySpark, in a local session."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hoodie_py.errors import HoodieError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_rows(
    spark: SparkSession, uri: str, columns: Sequence[str], options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Read a table's rows with ``spark.read.format("hoodie")``, sorted by the first column.

    Raises:
        HoodieError: the read failed.
    """
    from hoodie_py.cli.demo.steps import read_in_spark
    from hoodie_py.spark import register

    with report_spark_errors("Reading through PySpark failed"):
        register(spark)
        stored = {"storage_options": json.dumps(dict(options))} if options else {}
        rows = read_in_spark(spark, uri, stored).select(*columns).collect()
    return sorted((row.asDict() for row in rows), key=lambda row: row[columns[0]])


@contextmanager
def report_spark_errors(what: str) -> Iterator[None]:
    """Turn any error of Spark into a HoodieError of one line.

    Raises:
        HoodieError: the block failed.
    """
    try:
        yield
    except HoodieError:
        raise
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        hint = "`hoodie doctor` checks Java and PySpark; --debug shows what Spark says."
        raise HoodieError(f"{what}: {first}", hint=hint) from error


def start_spark(debug: bool) -> SparkSession:
    """Start a local session; ``debug`` shows Spark's messages.

    Raises:
        HoodieError: Spark did not start.
    """
    with report_spark_errors("Spark did not start"):
        return _start_spark(debug)


def _start_spark(debug: bool) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _hide_messages(debug):
        spark = (
            SparkSession.builder.master("local[2]")
            .appName("hoodie demo")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "1")
            .getOrCreate()
        )
    if not debug:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _hide_messages(debug: bool) -> Iterator[None]:
    """Hide the messages of the Java process that the block starts, unless it fails to start.

    Java inherits file descriptor 2 and keeps it, so its later messages stay hidden, too.
    """
    if debug:
        yield
        return
    sys.stderr.flush()
    ours = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(ours, 2)
            hidden.seek(0)
            os.write(2, hidden.read()[-4000:])
            raise
        finally:
            os.dup2(ours, 2)
            os.close(ours)
