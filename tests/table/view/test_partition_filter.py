"""Folders above partitions are left out only where nothing below them can pass the filter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_py.table.filter.as_predicate import as_predicate
from hoodie_py.table.filter.predicate import Predicate
from hoodie_py.table.filter.pruning import find_fixed_values, may_match_partition, names_partition
from hoodie_py.table.view.partition_filter import PartitionFilter
from hoodie_py.table.view.partition_values import parse_partition_constants
from tests.formats.partition_paths import make_partition_path
from tests.table.tables import make_table, open_view
from tests.table.view.test_partitions import METAFILE, fields, values_of
from tests.watched_requests import Request, find_listed

SCHEMA = pa.schema({"p": pa.string(), "q": pa.string(), "n": pa.int32()})
NULL = "__HIVE_DEFAULT_PARTITION__"
TEXTS = st.text("ab/=%25", max_size=4)
VALUES = st.one_of(st.none(), TEXTS)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@st.composite
def filters(draw: st.DrawFn) -> str:
    """Draw the text of a filter of p, q and n."""
    column = draw(st.sampled_from("pq"))
    text = draw(TEXTS)
    leaf = draw(
        st.sampled_from([
            f"{column} = {_quote(text)}", f"{column} > {_quote(text)}", f"{column} <= {_quote(text)}",
            f"{column} in ({_quote(text)}, 'a')", f"{column} is null", f"{column} <=> {_quote(text)}",
            f"{column} like {_quote(text + '%')}", f"upper({column}) = {_quote(text.upper())}", "n = 1",
            f"p = q or {column} = {_quote(text)}",
        ])
    )  # fmt: skip
    match draw(st.integers(0, 5)):
        case 0:
            return f"({leaf}) and ({draw(filters())})"
        case 1:
            return f"({leaf}) or ({draw(filters())})"
        case 2:
            return f"not ({leaf})"
    return leaf


@given(st.tuples(VALUES, VALUES), filters(), st.sampled_from(["p", "q", "p,q"]), st.booleans(), st.booleans())
@example(("a/b", "a"), "p = 'a/b'", "p,q", False, False)
@example(("a=b", None), "p = 'a=b'", "p", False, False)
def test_folders_of_partitions_with_wanted_rows_are_kept(
    values: tuple[str | None, str | None], text: str, names: str, hive: bool, encoded: bool
) -> None:
    flags = {"hive_style_partitioning": hive, "partitionpath.urlencode": encoded}
    config = fields(
        names, "COMPLEX", **{f"hoodie.datasource.write.{key}": str(flag).lower() for key, flag in flags.items()}
    )
    written = dict(zip(("p", "q"), values, strict=True))
    chosen = tuple(names.split(","))
    path = make_partition_path(chosen, tuple(written[name] for name in chosen), hive_style=hive, url_encode=encoded)
    predicate = as_predicate(text, SCHEMA)
    assert predicate is not None
    wanted = may_match_partition(predicate, {name: written[name] or None for name in chosen})
    for whole in (False, True):
        known = parse_partition_constants(config, SCHEMA, path, whole=whole)
        wanted = wanted or (bool(known) and may_match_partition(predicate, known))
    chosen_ones = PartitionFilter(predicate, config, SCHEMA)
    read = parse_partition_constants(config, SCHEMA, path, whole=names_partition(predicate, chosen))
    matches = may_match_partition(predicate, read)
    fixed = find_fixed_values(predicate).get("p")
    if names == "p,q" and not names_partition(predicate, chosen) and path.count("/") == 1 and fixed and not encoded:
        matches = matches and path.startswith(f"p={fixed}/" if hive else f"{fixed}/")  # Java lists this folder alone
    assert chosen_ones.may_match(path) is matches
    if wanted:
        parts = path.split("/")
        folders = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        assert all(chosen_ones.may_lead(folder) for folder in folders)


def _filter(text: str) -> Predicate:
    predicate = as_predicate(text, SCHEMA)
    assert predicate is not None
    return predicate


@pytest.mark.parametrize(
    ("text", "folder", "kept"),
    [
        ("p = 'a'", "a", True), ("p = 'a'", "b", False), ("p = 'a/c'", "a", True), ("p = 'a/c'", "ab", False),
        ("p = 'a' and q = 'b'", "a/c", False), ("p = 'a' and q = 'b'", "a/b/c", False), ("q = 'b'", "x", True),
        ("q = 'b'", "x/c", True), ("p in ('a', 'b')", "c", False), ("p like 'ab%'", "aa", False),
        ("p is null", "a", False),
        ("p = 'a'", "__HIVE_DEFAULT_PARTITION__", True), ("n = 1", "b", True), ("p = 'a'", "p=a", True),
        ("p = 'a'", "p=b", False), ("p > 'b'", "a", False), ("p > 'b' or n = 1", "a", True),
    ],
)  # fmt: skip
def test_folders(text: str, folder: str, kept: bool) -> None:
    assert PartitionFilter(_filter(text), fields("p,q"), SCHEMA).may_lead(folder) is kept


TYPED = pa.schema({"n": pa.int32(), "d": pa.date32(), "b": pa.bool_(), "m": pa.decimal128(6, 2), "p": pa.string()})


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(
    ("text", "folder", "kept"),
    [
        ("n = 1", "1", True), ("n = 1", "2", False), ("n = 1", "01", True), ("n in (1, 2)", "3", False),
        ("n = 1", "x", True), ("n = 1", NULL, False), ("n is null", NULL, True), ("n is null", "1", False),
        ("n <=> null", "1", False), ("n > 3", "3", False), ("n > 3", "4", True), ("n = 1 and n = 2", "1", False),
        ("n = 1 and d = date'2024-01-02'", "1/2024-01-02", True),
        ("n = 1 and d = date'2024-01-02'", "1/2024-01-03", False),
        ("d in (date'2024-01-02')", "1", True), ("d in (date'2024-01-02')", "1/2024-01-03", False),
        ("d >= date'2024-01-02'", "1/2024-01-01/true", False), ("b", "1/2024-01-03/false", False),
        ("b = true", "1/2024-01-03/true", True), ("m = 1.5", "1/2024-01-03/true/1.50", True),
        ("m = 1.5", "1/2024-01-03/true/1.51", False), ("p = 'a/b'", "1/2024-01-03/true/1.51/a", True),
        ("p = 'a/b'", "1/2024-01-03/true/1.51/a/c", False), ("p = 'a/b'", "1/2024-01-03/true/1.51/b", False),
        ("p = 'a' or n = 2", "1", True), ("p = 'a' or n = 2", "1/2024-01-03/true/1.51/b", False),
        ("n + 1 = 2", "2", True),
    ],
)  # fmt: skip
def test_folders_of_typed_fields(text: str, folder: str, kept: bool, hive: bool, encoded: bool) -> None:
    flags = {"hive_style_partitioning": hive, "partitionpath.urlencode": encoded}
    config = fields(
        "n,d,b,m,p", "COMPLEX", **{f"hoodie.datasource.write.{key}": str(flag).lower() for key, flag in flags.items()}
    )
    parts = folder.split("/")
    if hive:
        parts = [f"{name}={part}" for name, part in zip("ndbmp", parts, strict=False)] + parts[5:]
    predicate = as_predicate(text, TYPED)
    assert predicate is not None
    assert PartitionFilter(predicate, config, TYPED).may_lead("/".join(parts)) is kept


def test_only_the_named_folders_are_listed(tmp_path: Path, requests_made: list[Request]) -> None:
    make_table(
        tmp_path, {f"{p}/{q}/{METAFILE}": b"" for p in "abc" for q in "xyz"}, **{"hoodie.table.partition.fields": "p,q"}
    )
    view = open_view(tmp_path)
    requests_made.clear()
    predicate = _filter("p = 'b' and q in ('x', 'z')")
    found = view.list_partitions(
        SCHEMA,
        lambda partition: may_match_partition(predicate, values_of(partition)),
        PartitionFilter(predicate, view.config, SCHEMA).may_lead,
    )
    assert [each.partition.path for each in found] == ["b/x", "b/z"]
    assert find_listed(requests_made, tmp_path) == ["", "b", "b/x", "b/z"]
