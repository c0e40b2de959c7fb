"""What a merger class must look like, and what becomes of what its row form returns."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hoodie_py import BufferedBatch, BufferedRecord, MergeError, RecordMerger, UnsupportedFeatureError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.reader.merge.merger import merge_rows
from hoodie_py.reader.record.row_store import RowStore
from tests.reader.histories import SCHEMA, Version, context, entries


def newer_wins(self: Any, older: Any, newer: Any, context: Any, props: Any) -> Any:
    return newer


def declare(**members: Any) -> type[RecordMerger]:
    return type("Mine", (RecordMerger,), {"merge": newer_wins, **members})


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("should_flush", "context.delete"),
        ("shouldFlush", "context.delete"),
        ("full_outer_merge", "once for each pair"),
        ("fullOuterMerge", "once for each pair"),
        ("combineAndGetUpdateValue", "merge takes its place"),
        ("preCombine", "merge takes its place"),
        ("partialMerge", "partial_merge"),
        ("getMergingStrategy", "strategy_id"),
        ("getRecordType", "every kind of row"),
        ("isProjectionCompatible", "projection_compatible"),
        ("getMandatoryFieldsForMerging", "mandatory_fields"),
    ],
)
def test_old_names_fail_at_class_creation(name: str, remedy: str) -> None:
    with pytest.raises(TypeError, match=rf"Mine\.{name} belongs to the merger interface before Hudi 1\.1: .*{remedy}"):
        declare(**{name: lambda self: None})


@pytest.mark.parametrize(
    "merge",
    [
        lambda self, older, old_schema, newer, new_schema, props: newer,
        lambda self, older, newer, props: newer,
        lambda self, older, newer, context, props, more: newer,
        lambda self, older, newer, context, *, props: newer,
        staticmethod(lambda older, newer, context: newer),
        classmethod(lambda cls, older, newer, context: newer),
    ],
)
def test_old_signatures_fail_at_class_creation(merge: Any) -> None:
    with pytest.raises(
        TypeError, match=r"merge must take \((self, )?older, newer, context, props\); schemas and Option"
    ):
        declare(merge=merge)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("partial_merge", "older, newer, reader_schema, context, props"),
        ("merge_batch", "older, newer, context, props"),
        ("partial_merge_batch", "older, newer, reader_schema, context, props"),
        ("mandatory_fields", "schema, config, props"),
        ("insert_batch", "newer, context, props"),
    ],
)
def test_other_methods_are_checked_too(name: str, arguments: str) -> None:
    with pytest.raises(TypeError, match=rf"Mine\.{name} must take \(self, {arguments}\)"):
        declare(**{name: lambda self, one: one})


@pytest.mark.parametrize(
    "merge",
    [
        lambda self, *versions: versions[1],
        lambda self, older, newer, context, props, more=1: newer,
        staticmethod(lambda older, newer, context, props: newer),
        staticmethod(max),
    ],
)
def test_what_can_be_called_is_accepted(merge: Any) -> None:
    declare(merge=merge)


def test_an_async_merge_is_refused() -> None:
    async def merge(self: Any, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer

    with pytest.raises(TypeError, match="not an async one"):
        declare(merge=merge)


def test_class_attributes_are_checked() -> None:
    with pytest.raises(TypeError, match="payload_classes must be a tuple"):
        declare(payload_classes="com.example.Payload")
    with pytest.raises(TypeError, match="strategy_id must be the text"):
        declare(strategy_id=7)


def test_merge_is_the_one_method_to_write() -> None:
    class Nothing(RecordMerger):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()  # type: ignore[abstract]
    assert declare()().projection_compatible is False


@pytest.mark.parametrize(
    ("populated", "expected"),
    [(True, ("_hoodie_record_key", "ts", "v")), (False, ("id", "region", "ts", "v"))],
)
def test_mandatory_fields_default_to_key_and_ordering(populated: bool, expected: tuple[str, ...]) -> None:
    config = TableConfig(
        "t",
        9,
        MergeMode.CUSTOM,
        "x",
        None,
        record_key_fields=("id", "region"),
        ordering_fields=("ts", "v"),
        populate_meta_fields=populated,
    )
    assert tuple(declare()().mandatory_fields(SCHEMA, config, {})) == expected


def test_partial_merge_must_be_written() -> None:
    gone: BufferedRecord[Any] = BufferedRecord.of_delete("k")
    with pytest.raises(
        UnsupportedFeatureError, match=r"Mine does not merge partial updates\..*Implement partial_merge"
    ):
        declare()().partial_merge(gone, gone, SCHEMA, None, {})  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------- the row form


def merged(merge: Any) -> BufferedBatch:
    ctx = context(RowStore(SCHEMA))
    older = entries(ctx, [Version("a", "row", 1, 1), Version("b", "row", 1, 2)])
    newer = entries(ctx, [Version("a", "row", 2, 3), Version("b", "flagged", 2, 4)])
    assert older is not None
    assert newer is not None
    merger = declare(merge=lambda self, a, b, c, p: merge(a, b, c))()
    return merge_rows(older, newer, lambda a, b: merger.merge(a, b, ctx, {}), merger)


@pytest.mark.parametrize(
    ("merge", "complaint"),
    [
        (lambda a, b, c: None, "returned NoneType, not a BufferedRecord.*context.delete"),
        (lambda a, b, c: b.record, "returned Row, not a BufferedRecord"),
        (lambda a, b, c: (b for _ in ()), "returned generator"),
        (lambda a, b, c: dataclasses.replace(b, record_key="z"), "of another key, 'z'"),
        (lambda a, b, c: dataclasses.replace(b, record=None, operation=None), "live record without data"),
        (lambda a, b, c: dataclasses.replace(b, operation="D"), "the operation 'D', not a HoodieOperation"),
        (lambda a, b, c: setattr(b, "operation", None), "tried to change a record .* Return context.replace"),
        (lambda a, b, c: 1 // 0, "failed: ZeroDivisionError"),
        (lambda a, b, c: c.get_value(None, "v").strip(), "failed: AttributeError"),
        (lambda a, b, c: c.get_value(b, "nowhere"), "a column that the table does not have.*column=nowhere"),
        (lambda a, b, c: next(iter(())), "failed: StopIteration"),
    ],
)
def test_bad_results_name_key_and_merger(merge: Any, complaint: str) -> None:
    with pytest.raises(MergeError, match=complaint) as caught:
        merged(lambda a, b, c: merge(a, b, c) if b.is_delete else b)
    assert caught.value.where["key"] == "b"
    assert caught.value.where["merger"] == "Mine"


def test_results_come_back_as_a_batch() -> None:
    batch = merged(lambda a, b, c: c.delete(c.replace(a, v=9)) if b.is_delete else b)
    assert batch.keys.to_pylist() == ["a", "b"]
    assert batch.operation.to_pylist() == [None, "D"]
    assert batch.column("v").to_pylist() == [3, 9]
    assert batch.ordering.to_pylist() == [2, 1]
