"""Ranges of commits whose files were cleaned, and days that Java's statistics have late, beside Java's own answers."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, HoodieWarning
from integration.java_hudi.session import JavaHudiError, JavaSession
from integration.java_hudi.tables import Kind

FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
OFF = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false", "hoodie.metadata.enable": "false"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
CORRECTED = {
    f"spark.sql.{files}.datetimeRebaseModeIn{way}": "CORRECTED"
    for files in ("parquet", "avro")
    for way in ("Read", "Write")
}


def ask_java(java: JavaSession, table: HoodieTable, end: str, fallback: str) -> set[tuple[str, int]] | None:
    """The rows up to an end; None where Java fails as it does not find a file."""
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.read.end.instanttime": end,
        FALLBACK: fallback,
    }
    try:
        found = java.read(table.uri, **{name.replace(".", "__"): value for name, value in options.items()})
    except JavaHudiError as error:
        if "does not exist" not in str(error):
            raise
        return None
    return {(each["id"], each["v"]) for each in found.to_pylist()}


def ask(table: HoodieTable, end: str, fallback: str) -> set[tuple[str, int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoodieWarning)
        found = table.incremental("000", end, options={FALLBACK: fallback}).to_arrow().to_pylist()
    return {(each["id"], each["v"]) for each in found}


@pytest.mark.parametrize(
    ("version", "table_type"), [(9, "MERGE_ON_READ"), (6, "MERGE_ON_READ"), (9, "COPY_ON_WRITE")], ids=str
)
def test_a_cleaned_range_has_the_rows_that_java_has_and_those_that_it_loses(
    java: JavaSession, tmp_path: Path, version: int, table_type: str
) -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    table = HoodieTable.create(
        tmp_path / "t", schema, record_key="id", table_type=table_type, table_version=version
    )  # fmt: skip

    def upsert(value: int, *keys: str) -> None:
        table.upsert([{"id": key, "v": value} for key in keys], options=OFF)

    upsert(1, "a", "b")
    for value, key in ((2, "a"), (3, "b")):
        upsert(value, key)
        if table_type == "MERGE_ON_READ":
            table.compact(options=OFF)
    writes = [each.request_time if version < 8 else str(each.completion_time) for each in table.timeline]
    table.clean(options={**OFF, **ONE_VERSION})
    whole = {("a", 2), ("b", 3)}
    for fallback in ("true", "false"):
        assert ask(table, writes[-1], fallback) == ask_java(java, table, writes[-1], fallback) == whole
    upsert(9, "a")
    table = table.refresh()
    assert ask(table, writes[-1], "false") == ask_java(java, table, writes[-1], "false") == whole
    assert ask_java(java, table, writes[-1], "true") == {("b", 3)}
    assert ask(table, writes[-1], "true") == whole
    assert ask_java(java, table, writes[1], "true") == set()
    assert ask(table, writes[1], "true") == {("a", 2)}
    assert ask_java(java, table, writes[1], "false") is None


@pytest.mark.parametrize("block", ["parquet", "avro"])
def test_options_of_java_have_its_answer(java: JavaSession, tmp_path: Path, block: str) -> None:
    """Java reads Parquet blocks by the range's filter, so that later rows in them hide none."""
    options = {
        **Kind(9, False, False).write_options,
        "hoodie.clean.automatic": "false",
        "hoodie.logfile.data.block.format": block,
    }
    path = tmp_path / "t"
    schema = pa.schema([("id", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])

    def upsert(value: int, *keys: str, mode: str = "append") -> None:
        java.write(path, [{"id": key, "v": value, "ts": value} for key in keys], options, schema=schema, mode=mode)

    upsert(1, "a", "b", mode="overwrite")
    for value, key in ((2, "a"), (3, "b")):
        upsert(value, key)
        HoodieTable.open(path).compact(options=OFF)
    HoodieTable.open(path).clean(options={**OFF, **ONE_VERSION})
    end = str(list(HoodieTable.open(path).timeline.select_writes())[-1].completion_time)
    upsert(9, "a")
    table = HoodieTable.open(path)
    theirs = {("a", 2), ("b", 3)} if block == "parquet" else {("b", 3)}
    assert ask_java(java, table, end, "true") == theirs
    by_options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.read.end.instanttime": end,
    }
    with pytest.warns(HoodieWarning, match="The latest file slices are read instead"):
        found = table.scan(options=by_options).to_arrow().to_pylist()
    assert {(each["id"], each["v"]) for each in found} == theirs
    assert ask(table, end, "true") == {("a", 2), ("b", 3)}


@pytest.mark.parametrize("version", [8, 6])
def test_days_that_java_stores_late_are_found(java: JavaSession, tmp_path: Path, version: int) -> None:
    days = [dt.date(1582, 10, day) for day in (4, 5, 14, 15, 24, 25)]
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("day", pa.date32()), ("ts", pa.int64())])
    rows = [{"id": f"k{at}", "part": f"p{at}", "day": day, "ts": 1} for at, day in enumerate(days)]
    options = {
        **Kind(version, True, True).write_options,
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": str(version == 8).lower(),
        "hoodie.datasource.write.precombine.field": "ts",
    }
    path = tmp_path / "t"
    with java.configured(CORRECTED):
        java.write(path, pa.Table.from_pylist(rows, schema), options, operation="insert", mode="overwrite")
        java.write(path, pa.Table.from_pylist([{**row, "ts": 2} for row in rows], schema), options)
        filters = [f"day = date '{day}'" for day in days]
        skipping = {"hoodie__enable__data__skipping": "true", "hoodie__metadata__enable": "true"}
        theirs = java.find(path, filters, "id", **skipping)
    assert theirs == [["k0"], [], [], ["k3"], ["k4"], ["k5"]]
    table = HoodieTable.open(path)
    for at, each in enumerate(filters):
        found = table.scan(filter=each, columns=["id"], options={"hoodie.enable.data.skipping": "true"})
        assert found.to_arrow()["id"].to_pylist() == [f"k{at}"]
    report = table.verify()
    assert report.is_right, str(report)
    assert {each.problem for each in report.remarks} == {"shifted"}
    assert len(list(report.remarks)) == (6 if version == 8 else 4)  # two files of two days, and their partitions
