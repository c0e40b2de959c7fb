"""A filter means what Spark's ``where`` means in the session, in slices with logs and without, in reads and writes.

The expected rows are those of a plain Parquet copy of the table, which Spark filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import Delete, HoodieTable, UnsupportedFeatureError, Update
from hoodie_py.spark import delete, merge_into, read, register, update

pytestmark = pytest.mark.spark
ZONE, ANSI, CASE = "spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive"
HOUR = 3600 * 10**6
SPRING, AUTUMN = 1710054000 * 10**6, 1730613600 * 10**6  # when the clocks of New York change in 2024
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("i", pa.int32()),
        ("z", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("text", pa.string()),
    ]
)


def make_rows() -> pa.Table:
    """Rows of the hours around both changes of the clocks, in two partitions."""
    times = [change + hour * HOUR for change in (SPRING, AUTUMN) for hour in range(-30, 31, 3)]
    times += [change + step for change in (SPRING, AUTUMN) for step in (-HOUR // 2, -1, HOUR // 2)]
    texts = ["2024-03-10", "2024-11-03 01:30:00", "5", "5.5", " 7 ", "x", None]
    count = 2 * len(times)
    return pa.table(
        {
            "id": range(count),
            "part": [f"p{number % 2}" for number in range(count)],
            "day": pa.array([times[n // 2] // (24 * HOUR) for n in range(count)], pa.int32()).cast(pa.date32()),
            "at": pa.array([times[n // 2] for n in range(count)], pa.int64()).cast(SCHEMA.field("at").type),
            "local": pa.array([times[n // 2] - 4 * HOUR for n in range(count)], pa.int64()).cast(pa.timestamp("us")),
            "i": pa.array([(2**31 - 1, 5, -(2**31), None)[n // 2 % 4] for n in range(count)], pa.int32()),
            "z": pa.array([n // 2 % 3 for n in range(count)], pa.int32()),
            "price": pa.array([n // 2 * 3 for n in range(count)], pa.int16()).cast(SCHEMA.field("price").type),
            "text": [texts[n // 2 % len(texts)] for n in range(count)],
        },
        SCHEMA,
    )


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """The rows: partition p0 has log files, p1 has none; Parquet files of the same rows are beside it."""
    rows = make_rows()
    pq.write_table(rows, tmp_path / "rows.parquet")
    made = HoodieTable.create(
        str(tmp_path / "table"), SCHEMA, record_key="id", partition_by="part", table_type="MERGE_ON_READ"
    )
    made.upsert(rows)
    made.upsert(rows.filter(pa.compute.equal(rows["part"], "p0")))
    logs = [(each.partition_path, bool(each.log_files)) for each in made.file_slices()]
    assert sorted(logs) == [("p0", True), ("p1", False)]
    return made


@contextmanager
def session(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


FILTERS = """
at >= timestamp'2024-03-10 12:00:00'
at < timestamp'2024-03-10 02:30:00'
at = timestamp'2024-11-03 01:30:00'
at between '2024-03-10' and '2024-03-11'
at > timestamp'2024-03-10 12:00:00Z'
at > date'2024-03-10'
at = day
at <= local
local >= timestamp'2024-11-03 01:30:00'
local = timestamp_ntz'2024-03-10 02:30:00'
day >= timestamp'2024-03-10 00:30:00'
day < at
day = '2024-11-03'
cast(at as date) = date'2024-03-10'
cast(at as date) in (date'2024-03-09', date'2024-11-03')
cast(at as date) <> day
not cast(at as date) < '2024-11-03'
cast(at as string) like '2024-03-10 03%'
cast(at as timestamp_ntz) = local
cast(local as timestamp) < at
cast(day as timestamp) <= at
cast(cast(at as string) as timestamp) = at
cast(at as bigint) > 1730613600
coalesce(at, timestamp'2024-03-10 12:00:00') > '2024-11-03 01:00:00'
case when z = 0 then at else local end > timestamp'2024-11-02 20:00:00'
""".strip().split("\n")
WITHOUT_ANSI = """
i + 1 < 0
- i < 0
i - 1 > 0
i / z > 1
i % z is null
cast(text as int) = 5
cast(text as double) > 5
cast(text as date) = '2024-03-10'
cast(text as timestamp) < at
cast(i as tinyint) = -1
cast(price as decimal(4, 2)) is null
text = 5
text > i
i in ('5', 'x')
price * 100000000 > 1
not (i + 1 > 0)
""".strip().split("\n")
SESSIONS = [
    ({ZONE: "America/New_York", ANSI: "true"}, FILTERS),
    ({ZONE: "America/New_York", ANSI: "false"}, [*FILTERS[::3], *WITHOUT_ANSI]),
    ({ZONE: "Asia/Kolkata", CASE: "false"}, ["AT < timestamp'2024-03-10 12:00:00'", "Cast(At as Date) = DAY"]),
]


def find_ids(frame: Any) -> list[int]:
    return sorted(frame.toArrow()["id"].to_pylist())


@pytest.mark.parametrize(("settings", "filters"), SESSIONS)
def test_filters_mean_what_where_means(
    spark: Any, table: HoodieTable, settings: dict[str, str], filters: list[str]
) -> None:
    register(spark)
    with session(spark, settings):
        plain = spark.read.parquet(str(Path(table.uri).parent / "rows.parquet"))
        merged = spark.read.format("hoodie").load(table.uri)
        columns = [f"({text}) as f{number}" for number, text in enumerate(filters)]
        answers = [each.selectExpr("id", *columns).toArrow().sort_by("id") for each in (plain, merged)]
        assert answers[0].equals(answers[1].cast(answers[0].schema))
        frames = [
            read(spark, table.uri, columns=["id"], filter=text).selectExpr("id", f"{number} as f")
            for number, text in enumerate(filters)
        ]
        found = reduce(lambda one, other: one.union(other), frames).toArrow().sort_by("id")
        wrong = {}
        for number, text in enumerate(filters):
            want = answers[0].filter(answers[0][f"f{number}"])["id"].to_pylist()
            got = found.filter(pa.compute.equal(found["f"], number))["id"].to_pylist()
            if got != want:
                wrong[text] = (got, want)
        assert wrong == {}


@pytest.mark.parametrize("text", ["at < timestamp'2024-03-10 12:00:00'", "cast(at as date) > date'2024-11-02'"])
def test_deletes_take_the_rows_that_where_selects(spark: Any, table: HoodieTable, text: str) -> None:
    with session(spark, {ZONE: "America/New_York"}):
        plain = spark.read.parquet(str(Path(table.uri).parent / "rows.parquet"))
        left = find_ids(plain.where(f"not ({text})"))
        gone = find_ids(plain.where(text))
        assert 0 < len(gone) < plain.count()
        assert delete(spark, table.uri, where=text).rows_deleted == len(gone)
        assert find_ids(read(spark, table.uri)) == left
        table.refresh().compact()
        assert find_ids(read(spark, table.uri, filter=f"not ({text})")) == left
        assert find_ids(read(spark, table.uri, filter=text)) == []


def test_updates_and_merges_compute_by_the_session(spark: Any, table: HoodieTable) -> None:
    with session(spark, {ZONE: "America/New_York", ANSI: "false", CASE: "false"}):
        plain = spark.read.parquet(str(Path(table.uri).parent / "rows.parquet"))
        want = plain.selectExpr(
            "id",
            "if(cast(at as date) = '2024-03-10', cast(at as string), text) as text",
            "if(cast(at as date) = '2024-03-10', i + 1, i) as i",
        )
        expected = want.toArrow().sort_by("id")
        settled = update(
            spark, table.uri, {"TEXT": "cast(At as string)", "i": "I + 1"}, where="cast(at as date) = '2024-03-10'"
        )
        assert settled.rows_updated > 0
        shown = read(spark, table.uri, columns=["id", "text", "i"]).toArrow().sort_by("id")
        assert shown.equals(expected.cast(shown.schema))
        source = spark.createDataFrame(
            [("2024-03-09 12:00:00", 1), ("2024-11-03 12:00:00", 2)], "moment string, tag int"
        )
        dropped = plain.where("cast(at as date) = '2024-03-09' and at > '2024-03-09 12:00:00'").count()
        done = merge_into(
            source,
            table.uri,
            "cast(target.AT as date) = cast(source.moment as date)",
            when_matched=[
                Delete(where="target.at > cast(source.moment as timestamp) and source.tag = 1"),
                Update({"Z": "tag"}, where="Source.Tag = 3"),
            ],
        )
        assert (done.rows_deleted, done.rows_updated) == (dropped, 0)
        assert dropped > 0


def test_filters_of_ranges_are_judged_by_the_session_or_refused(spark: Any, table: HoodieTable) -> None:
    register(spark)
    text = "at < timestamp'2024-03-10 12:00:00'"
    ranged = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
    with session(spark, {ZONE: "America/New_York"}):
        plain = spark.read.parquet(str(Path(table.uri).parent / "rows.parquet"))
        want = find_ids(plain.where(text))
        given = {**ranged, "hoodie.datasource.read.incr.filters": text}
        assert find_ids(read(spark, table.uri, options=given)) == want
        with pytest.raises(Exception, match="time zone, which Spark does not tell"):
            spark.read.format("hoodie").options(**given).load(table.uri).count()
        same = {**ranged, "hoodie.datasource.read.incr.filters": "at < timestamp'2024-03-10 16:00:00Z'"}
        assert find_ids(spark.read.format("hoodie").options(**same).load(table.uri)) == want
        for each in ("I = 5", "i + 1 > 3", "cast(text as int) = 5", "text = 5"):
            given = {**ranged, "hoodie.datasource.read.incr.filters": each}
            with pytest.raises(Exception, match=r"which Spark does not tell|unknown column"):
                spark.read.format("hoodie").options(**given).load(table.uri).count()


def test_what_is_not_followed_is_left_to_spark_or_refused(spark: Any, table: HoodieTable) -> None:
    text = "at < timestamp'2024-03-10 12:00:00'"
    with session(spark, {ZONE: "America/New_York", "spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        plain = spark.read.parquet(str(Path(table.uri).parent / "rows.parquet"))
        assert find_ids(read(spark, table.uri, columns=["id"], filter=text)) == find_ids(plain.where(text))
        with pytest.raises(UnsupportedFeatureError, match="timestampType=TIMESTAMP_NTZ"):
            delete(spark, table.uri, where=text)
    with session(spark, {ZONE: "PST"}):
        assert find_ids(read(spark, table.uri, columns=["id"], filter=text)) == find_ids(plain.where(text))
        with pytest.raises(UnsupportedFeatureError, match="time zone 'PST'"):
            delete(spark, table.uri, where=text)
    assert read(spark, table.uri).count() == plain.count()
