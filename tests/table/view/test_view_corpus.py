"""Slices of every reference table against the file names and instants in Java's answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie_py.files import TableFiles
from hoodie_py.formats.names import BASE_FILE_EXTENSIONS
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from hoodie_py.table.view.file_system_view import FileSystemView
from tests.corpus import case_folder, corpus_names, load_case

NAMES = corpus_names()

# Java hangs a completed log file on an uncommitted base file there and loses both (see slicing).
KEPT_BEYOND_JAVA = {"inflight_base_then_log_mor_v9"}


def open_view(root: Path) -> FileSystemView:
    files = TableFiles.open(str(root))
    config = load_config(files)
    return FileSystemView(files, config, TableTimeline.load(files, config))


def answers(name: str, *types: str) -> list[dict[str, Any]]:
    """Unfiltered queries of whole rows that Java answered, without reader options of their own."""
    found = []
    for query in load_case(name)["queries"]:
        options = {key: value for key, value in query["options"].items() if key != "as.of.instant"}
        plain = set(options) <= {"hoodie.datasource.query.type", "hoodie.metadata.enable"}
        whole = query["columns"] is None and query["filter"] is None
        if query["type"] in types and whole and plain and not query.get("or_error") and not query.get("subpath"):
            found.append(query)
    return found


def expected(name: str, query: dict[str, Any]) -> Any:
    return pq.read_table(case_folder(name) / query["expected"])


def distinct(table: Any, column: str) -> set[str]:
    return set(pc.unique(table.column(column)).to_pylist())


def count_rows(view: FileSystemView, base_file: BaseFile | None) -> int:
    return 0 if base_file is None else open_by_extension(view.files, base_file).num_rows


def has_meta(name: str) -> bool:
    return "nometa" not in name


@pytest.mark.parametrize("name", NAMES)
def test_read_optimised_base_files_are_those_in_javas_answer(name: str, corpus: Callable[[str], Path]):
    queries = answers(name, "read_optimized")
    view = open_view(corpus(name))
    for query in queries:
        bases = {each.base_file.name: each for each in view.list_base_files()}
        counts = {name: count_rows(view, each.base_file) for name, each in bases.items()}
        assert sum(counts.values()) == query["rows"]
        if has_meta(name):
            with_rows = {name for name, count in counts.items() if count}
            assert distinct(expected(name, query), "_hoodie_file_name") == with_rows


@pytest.mark.parametrize("name", [name for name in NAMES if has_meta(name)])
def test_rows_of_snapshots_come_from_the_slices(name: str, corpus: Callable[[str], Path]):
    """Row by row: the base file or file group that Java read it from, and the commit that wrote it."""
    view = open_view(corpus(name))
    for query in answers(name, "snapshot", "time_travel"):
        as_of = query["options"].get("as.of.instant")
        if as_of is not None and not as_of.isdigit():
            continue
        slices = view.list_slices(as_of)
        bases = {each.base_file.name for each in slices if each.base_file is not None}
        logged = {each.file_id for each in slices if each.log_files}
        answer = expected(name, query)
        sources = distinct(answer, "_hoodie_file_name")
        assert {source for source in sources if source.endswith(BASE_FILE_EXTENSIONS)} <= bases
        assert {source for source in sources if not source.endswith(BASE_FILE_EXTENSIONS)} <= logged
        rules = view.make_block_rules(as_of)
        assert all(rules.accepts(time) or time < (as_of or "") for time in distinct(answer, "_hoodie_commit_time"))
        if not view.config.is_merge_on_read and name not in KEPT_BEYOND_JAVA:
            rows = sum(count_rows(view, each.base_file) for each in slices)
            assert rows == query["rows"]
            assert not logged


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_of_javas_answer(name: str, corpus: Callable[[str], Path]):
    view = open_view(corpus(name))
    for query in answers(name, "snapshot", "read_optimized", "time_travel"):
        as_of = query["options"].get("as.of.instant")
        if as_of is not None and not as_of.isdigit():
            continue
        answer = expected(name, query).schema
        schema = resolve_schema(view.timeline, as_of)
        assert schema.arrow.names == answer.names
        assert [str(field.type) for field in comparable(schema.arrow)] == [
            str(field.type) for field in comparable(answer)
        ]


def comparable(schema: Any) -> Any:
    from hoodie_py.formats.parquet.decoder import convert_to_spark_schema

    return convert_to_spark_schema(schema)
