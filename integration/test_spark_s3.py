"""Tables on S3 with Spark: storage options of the load, or the session's S3 settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import s3fs

from hoodie_py import HoodieTable, HoodieWarning
from hoodie_py.spark import register
from hoodie_py.spark.process import is_connect
from hoodie_py.testing import LocalS3, local_s3
from integration.corpus_compare import differences

TABLE = "basic_mor_v9_part"
pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def lake(corpus: Callable[[str], Path]) -> Iterator[LocalS3]:
    with local_s3("spark-lake") as server:
        options = server.storage_options
        store = s3fs.S3FileSystem(key=options["key"], secret=options["secret"], endpoint_url=server.endpoint_url)
        store.put(str(corpus(TABLE)), f"{server.bucket}/{TABLE}", recursive=True)
        yield server


@pytest.fixture
def expected(corpus: Callable[[str], Path]) -> pa.Table:
    return HoodieTable.open(str(corpus(TABLE))).scan().to_arrow()


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_storage_options_travel_as_one_json_option(spark: Any, lake: LocalS3, expected: pa.Table, scheme: str) -> None:
    reader = spark.read.format("hoodie").option("storage_options", json.dumps(dict(lake.storage_options)))
    frame = reader.load(f"{scheme}://{lake.bucket}/{TABLE}")
    assert differences(frame.toArrow(), expected) == []


@pytest.mark.classic
def test_registering_takes_over_the_sessions_s3a_settings(spark: Any, lake: LocalS3, expected: pa.Table) -> None:
    settings = lake.spark_conf()
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        register(spark, name="lake")
    finally:
        for name in settings:
            spark.conf.unset(name)
    frame = spark.read.format("lake").load(f"s3a://{lake.bucket}/{TABLE}")
    assert differences(frame.toArrow(), expected) == []
    spark.sql(f"create table on_s3 using lake location 's3a://{lake.bucket}/{TABLE}'")
    try:
        assert spark.table("on_s3").count() == expected.num_rows
    finally:
        spark.sql("drop table on_s3")


def test_settings_that_a_connect_server_hides_are_said(spark: Any, lake: LocalS3) -> None:
    if not is_connect(spark):
        pytest.skip("the Spark session is not over Connect")
    name = "spark.hadoop.fs.s3a.secret.key"
    spark.conf.set(name, "hunter2")
    try:
        with pytest.warns(HoodieWarning, match=f"do not have {name}: a Connect server"):
            register(spark, name="lake")
    finally:
        spark.conf.unset(name)


def test_a_wrong_endpoint_is_an_error_without_credentials(spark: Any, lake: LocalS3) -> None:
    options = {**lake.storage_options, "secret": "hunter2-hunter2"}
    reader = spark.read.format("hoodie").option("storage_options", json.dumps(options))
    with pytest.raises(Exception, match="TableNotFoundError") as caught:
        reader.load(f"s3://{lake.bucket}/nowhere").schema  # noqa: B018 - over Connect, load alone asks nothing
    assert "hunter2" not in str(caught.value)
