"""Payload classes: the columnar form gives what the form for one record gives, on random pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import BufferedBatch, BufferedRecord, HoodieError
from hoodie_py.options.read import (
    DELETE_FIELD,
    DELETE_MARKER,
    ORDERING_FIELD_PROPERTY,
    SAME_ORDERING_UPDATES,
    UNAVAILABLE_VALUE,
)
from hoodie_py.reader.payloads.classes import _BY_NAME, make_builtin_payload_merger
from hoodie_py.reader.payloads.merger import PayloadMerger
from tests.reader.payload_pairs import ORDERINGS, PLACEHOLDER, both, context, described, pairs

CLASSES = sorted(_BY_NAME)
PROPS: tuple[Mapping[str, str], ...] = (
    {},
    {SAME_ORDERING_UPDATES: "false"},
    {DELETE_FIELD: "a", DELETE_MARKER: "8"},
    {DELETE_FIELD: "r", DELETE_MARKER: "8"},
    {ORDERING_FIELD_PROPERTY: "ts"},
    {UNAVAILABLE_VALUE: PLACEHOLDER},
)
RowForm = Callable[[BufferedRecord[Any], BufferedRecord[Any]], BufferedRecord[Any]]
BatchForm = Callable[[BufferedBatch, BufferedBatch], BufferedBatch]


def merger(name: str) -> PayloadMerger:
    found = make_builtin_payload_merger(name)
    assert found is not None
    return found


def check(older: BufferedBatch, newer: BufferedBatch, row_form: RowForm, batch_form: BatchForm) -> None:
    """Apply both forms and compare; a pair that one refuses the other must refuse too."""
    rows, refused = [], False
    for a, b in zip(older.to_records(), newer.to_records(), strict=True):
        try:
            rows.append(row_form(a, b))
        except HoodieError:
            refused = True
    if refused:
        with pytest.raises(HoodieError):
            batch_form(older, newer)
        return
    result = batch_form(older, newer)
    assert described(result, older) == described(BufferedBatch.from_records(older.context, rows), older)


@pytest.mark.parametrize("name", CLASSES, ids=lambda name: name.rpartition(".")[2])
@given(data=st.data(), ordering=st.sampled_from(ORDERINGS), props=st.sampled_from(PROPS), nulls=st.booleans())
@settings(max_examples=50, deadline=None)
def test_merge_batch_equals_merge(
    name: str, data: st.DataObject, ordering: tuple[str, ...], props: Mapping[str, str], nulls: bool
) -> None:
    given_pairs = data.draw(pairs(nulls))
    if nulls:  # a refused pair would hide the others
        given_pairs = given_pairs[:1]
    ctx = context(ordering)
    older, newer = both(ctx, given_pairs)
    one = merger(name)
    check(older, newer, lambda a, b: one.merge(a, b, ctx, props), lambda a, b: one.merge_batch(a, b, ctx, props))


@pytest.mark.parametrize("name", CLASSES, ids=lambda name: name.rpartition(".")[2])
@given(data=st.data(), ordering=st.sampled_from(ORDERINGS), nulls=st.booleans())
@settings(max_examples=20, deadline=None)
def test_pre_combine_batch_equals_pre_combine(
    name: str, data: st.DataObject, ordering: tuple[str, ...], nulls: bool
) -> None:
    given_pairs = data.draw(pairs(nulls))
    ctx = context(ordering)
    one_pair = nulls or ("MySql" in name and ordering != ("_event_seq",))  # which it refuses
    older, newer = both(ctx, given_pairs[:1] if one_pair else given_pairs)
    one = merger(name)
    check(older, newer, lambda a, b: one.pre_combine(a, b, ctx, {}), lambda a, b: one.pre_combine_batch(a, b, ctx, {}))


@pytest.mark.parametrize("name", CLASSES, ids=lambda name: name.rpartition(".")[2])
@given(given_pairs=pairs(nulls=True), props=st.sampled_from(PROPS))
@settings(max_examples=20, deadline=None)
def test_insert_batch_equals_insert(name: str, given_pairs: list[Any], props: Mapping[str, str]) -> None:
    ctx = context(("ts",))
    _, newer = both(ctx, given_pairs)
    one = merger(name)

    def insert(record: BufferedRecord[Any]) -> BufferedRecord[Any]:
        return ctx.delete(record) if not record.is_delete and one.is_deleted(record, ctx, props) else record

    check(newer, newer, lambda _, b: insert(b), lambda _, b: one.insert_batch(b, ctx, props))


@pytest.mark.parametrize("name", CLASSES, ids=lambda name: name.rpartition(".")[2])
@given(given_pairs=pairs(), ordering=st.sampled_from(ORDERINGS))
@settings(max_examples=10, deadline=None)
def test_pairs_do_not_influence_each_other(name: str, given_pairs: list[Any], ordering: tuple[str, ...]) -> None:
    ctx = context(ordering)
    older, newer = both(ctx, given_pairs)
    whole = described(merger(name).merge_batch(older, newer, ctx, {}), older)
    for i in range(len(newer)):
        a, b = older.take([i]), newer.take([i])
        assert described(merger(name).merge_batch(a, b, ctx, {}), a) == whole[i : i + 1]
