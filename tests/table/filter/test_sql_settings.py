"""What a session decides: time zone, ANSI mode and case; and what may be said where the session is not known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import Delete, HoodieTable, Update
from hoodie_py.errors import HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.filter.as_predicate import as_predicate
from hoodie_py.table.filter.sql_settings import UNKNOWN_SESSION, SqlSettings

SCHEMA = pa.schema(
    [("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("i", pa.int32()), ("A", pa.int32())]
)
NOON = "2024-03-10 12:00:00"


@pytest.mark.parametrize(
    "text",
    [
        "id = 'a' and i > 3",
        "i in (1, 2) or day >= '2024-03-10'",
        f"at > timestamp'{NOON}Z'",
        f"at > '{NOON}+01:00'",
        "cast(i as bigint) > 3 and cast(i as string) = '3'",
        "1 + 1 = i",
        "upper(id) like 'A%'",
    ],
)
def test_what_means_the_same_in_each_session_needs_none(text: str) -> None:
    known = as_predicate(text, SCHEMA)
    assert str(as_predicate(text, SCHEMA, settings=UNKNOWN_SESSION)) == str(known)


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        (f"at > timestamp'{NOON}'", "time zone"),
        (f"at > '{NOON}'", "time zone"),
        ("at > day", "time zone"),
        ("cast(at as string) = 'x'", "time zone"),
        ("i + 1 > 3", "ANSI"),
        ("- i > 3", "ANSI"),
        ("i / 2 > 3", "ANSI"),
        ("cast(id as int) = 3", "ANSI"),
        ("cast(i as tinyint) = 3", "ANSI"),
        ("id = 3", "ANSI"),
        ("i in ('1', '2')", "ANSI"),
        ("coalesce(i, id) = '1'", "ANSI"),
        ("id", "ANSI"),
    ],
)
def test_what_depends_on_a_session_that_is_not_known_is_refused(text: str, setting: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"{setting}.*Spark does not tell"):
        as_predicate(text, SCHEMA, settings=UNKNOWN_SESSION)


def test_names_match_as_the_session_says() -> None:
    loose, both = SqlSettings(case_sensitive=False), pa.schema([*SCHEMA, ("a", pa.int32())])
    assert str(as_predicate("ID = 'a' and a = 1", SCHEMA, settings=loose)) == "(id = 'a') and (A = 1)"
    for settings in (SqlSettings(), UNKNOWN_SESSION):
        with pytest.raises(InvalidQueryError, match="unknown column 'ID'"):
            as_predicate("ID = 'a'", SCHEMA, settings=settings)
    for settings in (loose, UNKNOWN_SESSION):
        with pytest.raises(InvalidQueryError, match="ambiguous"):
            as_predicate("a = 1", both, settings=settings)
    assert str(as_predicate("a = 1", both)) == "a = 1"


def test_words_for_today_are_refused_without_ansi_mode() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'today'"):
        as_predicate("day = 'today'", SCHEMA, settings=SqlSettings(ansi=False))


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """A row for each hour of the day on which New York's clocks go forward; with a day whose rows are in a log."""
    rows = [
        {"id": f"{hour:02d}", "at": 1710028800000000 + hour * 3600000000, "day": 19792, "i": hour, "A": 0}
        for hour in range(30)
    ]
    columns = [pa.array([row[name] for row in rows]) for name in ("id", "at", "day", "i", "A")]
    data = pa.table([column.cast(field.type) for column, field in zip(columns, _NARROW, strict=True)], _NARROW)
    data = data.cast(SCHEMA)
    made = HoodieTable.create(str(tmp_path), SCHEMA, record_key="id", table_type="MERGE_ON_READ")
    made.upsert(data)
    made.upsert(data.slice(0, 20))
    return HoodieTable.open(made.uri, timezone="America/New_York")


_NARROW = pa.schema(
    [("id", pa.string()), ("at", pa.int64()), ("day", pa.int32()), ("i", pa.int32()), ("A", pa.int32())]
)


def ids(table: HoodieTable, text: str | None = None) -> list[str]:
    return sorted(table.scan(filter=text).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("at < timestamp'2024-03-10 00:00:00'", 0, 4),
        ("cast(at as date) = '2024-03-10'", 5, 27),
        ("at >= day", 5, 29),
        ("cast(at as string) like '2024-03-10 03%'", 7, 7),
        ("at >= '2024-03-10 02:30:00'", 8, 29),
    ],
)
def test_the_zone_of_open_is_that_of_filters(table: HoodieTable, text: str, first: int, last: int) -> None:
    wanted = [f"{number:02d}" for number in range(first, last + 1)]
    assert ids(table, text) == wanted
    assert table.file_slices(filter=text)
    assert sorted(table.incremental(filter=text).to_arrow()["id"].to_pylist()) == wanted
    assert ids(HoodieTable.open(table.uri), text) != wanted
    table.compact()
    assert ids(table.refresh(), text) == wanted
    assert table.delete(text).rows_deleted == len(wanted)


def test_updates_and_merges_take_the_zone_of_open(table: HoodieTable) -> None:
    assert table.update({"day": "cast(at as date)"}, where="cast(at as date) > day").rows_updated == 2
    source = pa.table({"moment": ["2024-03-10 02:30:00"], "n": [1]})
    done = table.merge(
        source,
        on="target.at = cast(source.moment as timestamp)",
        when_matched=[Delete(where="target.at < timestamp'2024-03-10 03:00:00'"), Update({"A": "n"})],
    )
    assert (done.rows_updated, done.rows_deleted) == (0, 0)  # the clocks show 03:30 then, and no row has that time
    source = pa.table({"moment": ["2024-03-10 03:00:00"], "n": [1]})
    done = table.merge(source, on="target.at = cast(source.moment as timestamp)", when_matched=Update({"A": "n"}))
    assert done.rows_updated == 1
    assert ids(table.refresh(), "A = 1") == ["07"]


def test_an_unknown_zone_is_refused_where_a_filter_needs_it(table: HoodieTable) -> None:
    odd = HoodieTable.open(table.uri, timezone="Mars/Olympus")
    assert len(ids(odd, "i > 3")) == 26
    with pytest.raises(HoodieError, match="Mars/Olympus"):
        ids(odd, f"at > timestamp'{NOON}'")
