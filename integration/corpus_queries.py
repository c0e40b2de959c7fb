"""The queries that were asked of the reference tables, and which of them this version answers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieError, HoodieTable, HoodieWarning
from integration.corpus_compare import differences, plain_images
from integration.corpus_mergers import CORPUS_MERGERS
from tests.corpus import PACKAGED, case_folder, corpus_names, load_case

# Features that are still to come, as words of the tables' names. What such a table needs beyond this version is said by
# an UnsupportedFeatureError, which tests/ check.
NOT_YET = (
    "custom_cancel",  # its answers are RFC-101's, not Java's: tests/reader/test_divergences.py
)
# Java's answer to these loses a committed write, so it is no measure.
DOUBTFUL = ("inflight_base_then_log",)
# A log block of these is torn; Java skips it, and so does this reader, with a warning.
DAMAGED = ("damaged_log",)
# Java breaks on these queries rather than refuse them.
DEFECTS = ("InvalidAvroMagicException", "SparkFileNotFoundException")
# Java's Spark reader breaks on HFile blocks; what the rows must be is in tests/reader/log/test_hfile_blocks.py.
BROKEN = ("blocks_hfile", "blocks_mixed")


@dataclass(frozen=True, slots=True)
class Query:
    """One query of one reference table."""

    case: str
    id: str
    type: str
    columns: list[str] | None
    filter: str | None
    options: dict[str, str]
    expected: str | None
    java_error: str | None
    subpath: str
    merger: str | None

    def __str__(self) -> str:
        return f"{self.case}-{self.id}"

    @property
    def needs_sql(self) -> bool:
        """Whether it has expressions or functions that an engine evaluates, not the reader."""
        expressions = any(not re.fullmatch(r"\w+", column) for column in self.columns or ())
        return expressions or "from_unixtime(" in (self.filter or "")

    def expected_rows(self) -> pa.Table:
        """Java Hudi's answer."""
        assert self.expected is not None
        return pq.read_table(case_folder(self.case) / self.expected)


def queries(kinds: Collection[str], names: Collection[str] | None = None) -> Iterator[Query]:
    """Queries of the given types over the tables that this version reads."""
    for name in corpus_names():
        if any(word in name for word in NOT_YET) or (names is not None and name not in names):
            continue
        for query in load_case(name)["queries"]:
            if query["type"] in kinds:
                yield Query(
                    case=name,
                    id=query["id"],
                    type=query["type"],
                    columns=query["columns"],
                    filter=query["filter"],
                    options={k: v for k, v in query["options"].items() if not k.endswith("implementation.classes")},
                    expected=query["expected"],
                    java_error=query["or_error"],
                    subpath=query.get("subpath", ""),
                    merger=load_case(name).get("merger"),
                )


def parameters(kinds: Collection[str], names: Collection[str] | None = None, *, sql: bool = False) -> list[Any]:
    """The same as pytest parameters; those of the packaged tables' plain snapshots are smoke tests."""
    packaged = {folder.name for folder in PACKAGED.iterdir()}
    return [
        pytest.param(query, id=str(query), marks=[pytest.mark.smoke] if query.case in packaged else [])
        for query in queries(kinds, names)
        if sql or not query.needs_sql
    ]


def ask(uri: str, query: Query, storage_options: dict[str, Any] | None = None, **scan: Any) -> pa.Table:
    """Ask the in-process reader."""
    if query.subpath:
        uri = f"{uri}/{query.subpath}"
    table = HoodieTable.open(uri, storage_options=storage_options)
    kind = {"time_travel": "snapshot", "cdc": None}.get(query.type, query.type)  # for changes the options say so
    merger = CORPUS_MERGERS[query.merger] if query.merger else None
    return table.scan(
        columns=query.columns, filter=query.filter, query_type=kind, merger=merger, options=query.options, **scan
    ).to_arrow()


@contextmanager
def expect_warnings(query: Query) -> Iterator[None]:
    """Expect the warning of a torn block; allow the one of a range whose files are gone."""
    torn = query.case.startswith(DAMAGED) and query.type == "snapshot"
    with warnings.catch_warnings(), pytest.warns(HoodieWarning, match="corrupt log block") if torn else nullcontext():
        warnings.filterwarnings("ignore", "Files or commits of the range", HoodieWarning)
        warnings.filterwarnings("ignore", ".* is before the first commit", HoodieWarning)
        warnings.filterwarnings(
            "ignore", "[0-9,]+ commits? of the range .* archived", HoodieWarning
        )  # as Java reads it
        yield


def check(query: Query, uri: str, storage_options: dict[str, Any] | None = None, **scan: Any) -> None:
    """Ask in process and compare; where Java Hudi refuses, a HoodieError is the right answer."""
    broken = any(word in query.case for word in BROKEN)
    if query.java_error and not broken and not query.java_error.endswith(DEFECTS):
        with pytest.raises(HoodieError):
            ask(uri, query, storage_options, **scan)
        return
    with expect_warnings(query):
        try:
            actual = ask(uri, query, storage_options, **scan)
        except HoodieError:
            if query.java_error:  # Java breaks here, so an error is as good an answer
                return
            raise
    if not query.case.startswith(DOUBTFUL) and not query.java_error:
        expected = query.expected_rows()
        if query.type == "cdc":
            actual, expected = plain_images(actual), plain_images(expected)
        assert differences(actual, expected) == []
