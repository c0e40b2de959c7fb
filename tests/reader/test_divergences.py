"""docs/divergences.md, a test for each ruling: where Java Hudi 1.2.0 and RFC-101, or sense, differ."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieOperation, HoodieTable, MergeError, RecordMerger
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import DELETE_FIELD, DELETE_MARKER
from tests.corpus import ROOT
from tests.reader.slices import SCHEMA, Version, config_of, reader_of, rows_of, write_slice

COMMIT, EVENT = config_of(MergeMode.COMMIT_TIME_ORDERING), config_of(MergeMode.EVENT_TIME_ORDERING)
PAGE = ROOT / "docs" / "divergences.md"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Reads versions written to files: the rows of key a, without key, flag and what the test does not name."""

    def rows(
        base: Sequence[Version],
        log: Sequence[Version],
        config: TableConfig = EVENT,
        names: Sequence[str] = ("ts", "v"),
        schema: pa.Schema = SCHEMA,
        **settings: Any,
    ) -> list[dict[str, Any]]:
        written = write_slice(tmp_path, base, log, schema=schema)
        return rows_of(reader_of(tmp_path, written, config, columns=list(names), schema=schema, **settings))

    return rows


def merger_of(merge: Callable[..., Any], **members: Any) -> type[RecordMerger]:
    return type("Mine", (RecordMerger,), {"merge": lambda self, a, b, context, props: merge(a, b, context), **members})


def version(ts: int | None, v: int | None = 1, kind: str = "row", **more: Any) -> Version:
    return Version("a", kind, ts, 5, v, **more)


def test_the_whole_result_counts_not_its_identity(read: Any) -> None:
    deletes_older = merger_of(lambda older, newer, context: context.delete(older))
    assert read([], [version(1), version(2)], merger=deletes_older) == []
    assert read([version(1)], [version(2)], merger=deletes_older) == []


def test_an_unchanged_row_counts_for_statistics_only(tmp_path: Path) -> None:
    for merge, updates, operations in (
        (lambda older, newer, context: older, 0, [None]),
        (
            lambda older, newer, context: context.replace(older, v=older.ordering_value),
            1,
            [HoodieOperation.UPDATE_AFTER],
        ),
    ):
        written = write_slice(tmp_path, [version(1, 1)], [version(2, 2)])
        reader = reader_of(tmp_path, written, EVENT, merger=merger_of(merge))
        assert [record.operation for record in reader.buffered_records()] == operations
        assert reader.stats.updates == updates


def test_what_merge_returns_for_a_delete_entry_is_kept(read: Any) -> None:
    undoes = merger_of(lambda older, newer, context: context.replace(older, v=9) if newer.record is None else newer)
    assert read([], [version(1), version(None, kind="block")], merger=undoes) == [{"ts": 1, "v": 9}]


def test_two_deletes_without_data_replace_each_other(tmp_path: Path) -> None:
    newest = merger_of(lambda older, newer, context: newer)
    written = write_slice(tmp_path, [], [version(7, kind="block"), version(3, kind="block")])
    (record,) = reader_of(tmp_path, written, EVENT, merger=newest).log_records()
    assert record.ordering_value == 3


def test_a_partial_row_over_a_commit_time_delete_stays_partial(read: Any) -> None:
    log = [version(None, kind="block"), version(3, None, absent=("v",))]
    assert read([], log, COMMIT) == [{"ts": 3, "v": None}]


def test_a_null_ordering_value_on_a_live_row_is_an_error_that_names_place_and_values(read: Any) -> None:
    with pytest.raises(MergeError) as caught:
        read([], [version(None), version(7)])
    text = str(caught.value)
    for part in ("DEFAULT_ORDERING and 7", "key=a", "ordering_type=int64", "instants=2026010200000", "file_group="):
        assert part in text


def test_two_null_ordering_values_are_a_tie(read: Any) -> None:
    assert read([], [version(None, 1), version(None, 2)]) == [{"ts": None, "v": 2}]


def test_a_delete_marker_stored_with_the_table_is_honoured(read: Any) -> None:
    config = config_of(MergeMode.EVENT_TIME_ORDERING, {DELETE_FIELD: "s", DELETE_MARKER: "gone"})
    assert read([version(1)], [version(2, s="gone")], config) == []
    assert read([version(1)], [version(2, 2, s="Gone")], config) == [{"ts": 2, "v": 2}]


def test_delete_columns_are_read_for_every_merger(read: Any) -> None:
    seen = []

    def merge(older: Any, newer: Any, context: Any) -> Any:
        seen.append((newer.is_delete, context.get_value(newer, "_hoodie_is_deleted"), context.get_value(newer, "s")))
        return newer

    merger = merger_of(merge, projection_compatible=True, mandatory_fields=lambda self, schema, config, props: [])
    config = config_of(MergeMode.EVENT_TIME_ORDERING, {DELETE_FIELD: "s", DELETE_MARKER: "gone"})
    assert read([version(1)], [version(2, kind="flagged", s="gone")], config, names=["v"], merger=merger) == []
    assert seen == [(True, True, "gone")]


def test_a_commit_time_delete_is_forgotten_once_a_later_row_replaces_it(read: Any) -> None:
    log = [version(None, kind="block"), version(3, 3)]
    assert read([version(5, 5)], log) == [{"ts": 5, "v": 5}]


DEFAULTED = config_of(MergeMode.COMMIT_TIME_ORDERING, partial_update_mode="IGNORE_DEFAULTS")


@pytest.mark.parametrize(
    ("default", "newer", "expected"),
    [(None, None, 1), (0, 0, 1), (-128, -128, 1), (0, 2, 2), (128, 128, 128), (0, None, None)],
)
def test_ignoring_defaults_compares_as_java_does(read: Any, default: Any, newer: Any, expected: Any) -> None:
    rows = read([version(1, 1)], [version(2, newer)], DEFAULTED, defaults={"v": default})
    assert rows == [{"ts": 2, "v": expected}]


def test_ignoring_defaults_never_takes_a_text_for_a_default(read: Any) -> None:
    rows = read([version(1, s="x")], [version(2, s="d")], DEFAULTED, names=["s"], defaults={"s": "d"})
    assert rows == [{"s": "d"}]


def test_a_delete_keeps_the_data_that_the_merge_had(tmp_path: Path) -> None:
    deletes = merger_of(lambda older, newer, context: context.delete(older))
    written = write_slice(tmp_path, [version(1, 7)], [version(None, kind="block")])
    reader = reader_of(tmp_path, written, EVENT, merger=deletes)
    merged = next(reader.read_merges())
    assert merged.result.operation.to_pylist() == ["D"]
    assert merged.result.column("v").to_pylist() == [7]


def test_results_marked_as_update_before_are_deletes(read: Any) -> None:
    marks = merger_of(lambda older, newer, context: replace(newer, operation=HoodieOperation.UPDATE_BEFORE))
    assert read([version(1)], [version(2)], merger=marks) == []


def test_floats_order_as_javas_doubles_do(read: Any) -> None:
    schema = pa.schema([field if field.name != "ts" else pa.field("ts", pa.float64()) for field in SCHEMA])
    nan, minus_zero = float("nan"), -0.0
    assert read([], [version(nan, 1), version(9, 2)], names=["v"], schema=schema) == [{"v": 1}]  # type: ignore[arg-type]
    assert read([], [version(0.0, 1), version(minus_zero, 2)], names=["v"], schema=schema) == [{"v": 1}]  # type: ignore[arg-type]


def test_a_completed_log_on_an_uncommitted_base_file_is_read(corpus: Any) -> None:
    table = HoodieTable.open(corpus("inflight_base_then_log_mor_v9"))
    completed = {instant.request_time for instant in table.timeline if instant.is_completed}
    logs = [log for file_slice in table.file_slices() for log in file_slice.log_files]
    assert completed & {log.name.instant for log in logs} == {"20261121102502576"}


# ------------------------------------------------------------------------------------------------------------- the page


def rulings() -> list[tuple[str, str]]:
    """The table's rows: what each is about, and the tests that pin it."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "`test" in line]
    return [(cells[1].strip(), cells[-2]) for cells in (line.split("|") for line in lines)]


def test_the_page_names_a_test_for_every_ruling() -> None:
    text = PAGE.read_text()
    table = text[text.index("| where") :].split("\n\n")[0].splitlines()[2:]
    assert len(table) == len(rulings()) >= 13


@pytest.mark.parametrize(("about", "tests"), rulings(), ids=lambda text: text[:40])
def test_the_tests_that_the_page_names_exist(about: str, tests: str) -> None:
    named = re.findall(r"`(test_\w+)::(test_\w+)`", tests)
    assert named
    for module, function in named:
        names = [
            ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for folder in ("tests", "integration")
            for file in (ROOT / folder).rglob(f"{module}.py")
        ]
        found = [getattr(importlib.import_module(name), function, None) for name in names]
        assert any(map(callable, found)), about
