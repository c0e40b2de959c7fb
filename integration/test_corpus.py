"""Queries of the reference tables, also of ranges and changes, give Java Hudi's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from hoodie_py.testing import local_s3
from integration.corpus_compare import differences
from integration.corpus_queries import Query, check, parameters
from tests.corpus import packaged_names

KINDS = ("snapshot", "read_optimized")
IN_TIME = ("time_travel", "incremental", "cdc")
RANGES = ("incremental", "cdc")
# A few tables that between them have partitions, several log files, deletes, nested types and an archived timeline.
VARIED = (
    "archived_timeline_mor_v6",
    "basic_cow_v9_part",
    "basic_mor_v6_part",
    "basic_mor_v8_nonpart",
    "event_time_updates_mor_v9",
    "logonly_bucket_mor_v9",
    "many_row_groups_mor_v9",
    "types_mor_v9",
    "urlenc_partitions_mor_v9",
)
WITH_RANGES = (
    "cdc_before_after_mor_v9",
    "cdc_before_mor_v9",
    "cdc_op_key_only_cow_v9",
    "incremental_ranges_cow_v6",
    "incremental_ranges_mor_v9",
    "payload_reverse_order_mor_v8",
)
IN_SPARK = ("basic_cow_v9_part", "basic_mor_v9_part", "event_time_updates_mor_v9", "types_mor_v9")


# The reference collection's own judge, a step of .ci/run, asks all tables; these are asked wherever the tests run.
@pytest.mark.parametrize("query", parameters((*KINDS, *IN_TIME), packaged_names()))
def test_local_files(query: Query, corpus: Callable[[str], Path]) -> None:
    check(query, str(corpus(query.case)))


@pytest.mark.parametrize("query", parameters(KINDS, VARIED))
@pytest.mark.parametrize("batch_rows", [1, 3])
def test_any_batch_size(query: Query, batch_rows: int, corpus: Callable[[str], Path]) -> None:
    check(query, str(corpus(query.case)), batch_rows=batch_rows)


@pytest.mark.parametrize("query", parameters(RANGES, WITH_RANGES))
@pytest.mark.parametrize("batch_rows", [1, 3])
def test_any_batch_size_of_ranges(query: Query, batch_rows: int, corpus: Callable[[str], Path]) -> None:
    check(query, str(corpus(query.case)), batch_rows=batch_rows)


@pytest.fixture(scope="module")
def in_memory(corpus: Callable[[str], Path]) -> Iterator[Callable[[str], str]]:
    store = fsspec.filesystem("memory")

    def copied(name: str) -> str:
        if not store.exists(f"/corpus-tests/{name}"):
            store.put(str(corpus(name)), f"/corpus-tests/{name}", recursive=True)
        return f"memory://corpus-tests/{name}"

    yield copied
    store.rm("/corpus-tests", recursive=True)


@pytest.mark.parametrize("query", parameters(KINDS, VARIED))
def test_memory(query: Query, in_memory: Callable[[str], str]) -> None:
    check(query, in_memory(query.case))


@pytest.fixture(scope="module")
def on_s3(corpus: Callable[[str], Path]) -> Iterator[Callable[[str], tuple[str, dict[str, Any]]]]:
    with local_s3("corpus-tests") as server:
        options = dict(server.storage_options)
        store = fsspec.filesystem("s3", key=options["key"], secret=options["secret"], endpoint_url=server.endpoint_url)

        def copied(name: str) -> tuple[str, dict[str, Any]]:
            if not store.exists(f"corpus-tests/{name}"):
                store.put(str(corpus(name)), f"corpus-tests/{name}", recursive=True)
            return f"s3a://corpus-tests/{name}", options

        yield copied


@pytest.mark.s3
@pytest.mark.parametrize("query", [*parameters(KINDS, VARIED), *parameters(RANGES, WITH_RANGES)])
def test_s3(query: Query, on_s3: Callable[[str], tuple[str, dict[str, Any]]]) -> None:
    uri, storage_options = on_s3(query.case)
    check(query, uri, storage_options)


@pytest.mark.parametrize("query", parameters(KINDS, IN_SPARK, sql=True))
def test_spark(query: Query, corpus: Callable[[str], Path], spark: Any) -> None:
    from hoodie_py.spark import register

    register(spark)
    frame = spark.read.format("hoodie").options(**query.options).load(str(corpus(query.case)))
    if query.filter:
        frame = frame.where(query.filter)
    if query.columns:
        frame = frame.selectExpr(*query.columns)
    assert differences(frame.toArrow(), query.expected_rows()) == []
