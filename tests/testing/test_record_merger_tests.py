"""The conformance suite lets sound mergers pass, and names what is wrong with others."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieOperation, RecordMerger
from hoodie_py.testing import MergerReport, RecordMergerTests
from tests.reader.mergers import MERGERS, Dearest, Founder, Sums, Undoing

WIDE = pa.schema(
    [
        ("ts", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("qty", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("attributes", pa.map_(pa.string(), pa.int64())),
        ("place", pa.struct([("city", pa.string()), ("flag", pa.bool_())])),
        ("_hoodie_is_deleted", pa.bool_()),
        ("_hoodie_operation", pa.string()),
    ]
)


@pytest.fixture(params=MERGERS, ids=lambda cls: cls.__name__)
def sound(request: pytest.FixtureRequest) -> type[RecordMerger]:
    merger: type[RecordMerger] = request.param
    return merger


def suite_of(merger: Any, **attributes: Any) -> type[RecordMergerTests]:
    return type("Suite", (RecordMergerTests,), {"merger": merger, "examples": 15, **attributes})


def failing(suite: type[RecordMergerTests]) -> dict[str, str]:
    """Run a suite as pytest would, a new instance a test; what fails, and why."""
    found: dict[str, str] = {}
    for name in (name for name in dir(suite) if name.startswith("test_")):
        arguments = [lambda key, value: None] if name == "test_associativity_is_reported" else []
        try:
            with warnings.catch_warnings(record=True):
                getattr(suite(), name)(*arguments)
        except Exception as error:
            found[name.removeprefix("test_")] = str(error)
    return found


def test_sound_mergers_pass(sound: type[RecordMerger]) -> None:
    assert failing(suite_of(sound)) == {}


@pytest.mark.parametrize("ordering", [("ts",), ("day", "ts"), ("place.city",), ()])
def test_any_columns_and_any_ordering(ordering: tuple[str, ...]) -> None:
    assert failing(suite_of(Undoing, schema=WIDE, ordering_fields=ordering)) == {}


def test_rows_properties_and_instances_can_be_given() -> None:
    rows = [{"ts": 1, "qty": 60, "price": 1.0, "name": "a"}]
    assert failing(suite_of(Sums(), rows=rows, props={"limit": "100"})) == {}


def test_without_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert failing(suite_of(Dearest)) == {}
    assert "batch_form_equals_row_form" in failing(suite_of(SloppyBatch))


class SuiteOfFounder(RecordMergerTests):
    merger = Founder


class TestFounderByPytest(SuiteOfFounder):
    """Collected and run by pytest itself."""

    examples = 5


# ---------------------------------------------------------------------------------------------- what is wrong is found


class Broken(RecordMerger):
    strategy_id = "b2000000-0000-4000-8000-000000000000"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer


class Nameless(RecordMerger):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer


class DropsByNone(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return None if newer.is_delete else newer


class TripsOverNull(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        return newer if context.get_value(newer, "ts") >= context.get_value(older, "ts") else older


class LosesData(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.is_delete:
            return dataclasses.replace(newer, record=None, schema_id=None, ordering_value=12345)
        return newer


class LivesWithoutData(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return dataclasses.replace(newer, operation=None)


class ChangesItsInput(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if isinstance(newer.record, dict):
            newer.record["qty"] = 5
        return newer


class AssignsToItsInput(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete:
            newer.operation = HoodieOperation.DELETE
        return newer


class Counts(Broken):
    def __init__(self) -> None:
        self.calls = 0

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        self.calls += 1
        return older if self.calls % 3 == 0 else newer


class OtherKey(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return dataclasses.replace(newer, record_key="other") if older.is_delete else newer


class WrongType(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.ordering_value == newer.ordering_value and not newer.is_delete:
            return context.replace(newer, qty="many")
        return newer


class KnowsDicts(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older if isinstance(newer.record, dict) else newer


class SloppyBatch(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older if newer.ordering_value == older.ordering_value else newer

    def merge_batch(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer


class LooksFurther(Broken):
    projection_compatible = True

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older if context.get_value(older, "qty") == 7 else newer


class NamesNothing(Broken):
    projection_compatible = True

    def mandatory_fields(self, schema: Any, config: Any, props: Any) -> Any:
        return ["nowhere"]


class HalfPartial(Broken):
    def partial_merge(self, older: Any, newer: Any, reader_schema: Any, context: Any, props: Any) -> Any:
        return older if isinstance(newer.record, dict) else newer


DELETES = {"delete_with_data", "delete_without_data", "commit_time_delete", "delete_after_a_delete"}
BREAKAGE: dict[type[RecordMerger], tuple[set[str], str]] = {
    Nameless: ({"a_table_can_name_it"}, "strategy_id"),
    DropsByNone: (DELETES, "context.delete"),
    TripsOverNull: ({"null_ordering"}, "TypeError"),
    LosesData: ({"deletes_keep_their_data"}, "which keeps the data"),
    LivesWithoutData: (
        {"delete_without_data", "commit_time_delete", "delete_after_a_delete"},
        "live record without data",
    ),
    ChangesItsInput: ({"nothing_is_changed_in_place", "dict_rows_and_arrow_rows_agree"}, "changed its input"),
    AssignsToItsInput: ({"row_after_a_delete", "delete_after_a_delete"}, "tried to change a record"),
    OtherKey: ({"row_after_a_delete", "delete_after_a_delete"}, "another key"),
    WrongType: ({"rows_of_equal_ordering", "null_ordering", "row_after_a_delete"}, "does not fit its column"),
    KnowsDicts: ({"dict_rows_and_arrow_rows_agree"}, "over Arrow"),
    SloppyBatch: ({"batch_form_equals_row_form"}, "in a batch"),
    LooksFurther: ({"mandatory_fields_suffice"}, "mandatory_fields"),
    NamesNothing: ({"mandatory_fields_suffice"}, "nowhere"),
    HalfPartial: ({"partial_rows"}, "over Arrow"),
}


@pytest.mark.parametrize("merger", BREAKAGE, ids=lambda cls: cls.__name__)
def test_what_is_wrong_is_found_by_the_right_tests(merger: type[RecordMerger]) -> None:
    names, complaint = BREAKAGE[merger]
    found = failing(suite_of(merger))
    assert set(found) == names
    assert any(complaint in text for text in found.values()), found


def test_a_merger_with_a_memory_is_found() -> None:
    assert "same_arguments_same_result" in failing(suite_of(Counts))


# ------------------------------------------------------------------------------------------- associativity is reported


class Average(Broken):
    """Deliberately not associative."""

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.is_delete or newer.is_delete:
            return newer
        a, b = (context.get_value(rec, "price") or 0.0 for rec in (older, newer))
        return context.replace(newer, price=(a + b) / 2)


@pytest.mark.parametrize(("merger", "expected"), [(Broken, True), (Average, False)])
def test_associativity_is_reported_and_asked_of_nobody(merger: type[RecordMerger], expected: bool) -> None:
    said: dict[str, object] = {}
    with warnings.catch_warnings(record=True) as caught:
        suite_of(merger)().test_associativity_is_reported(said.__setitem__)
    assert said["associative"] is expected
    assert [w.category for w in caught] == ([] if expected else [MergerReport])
    assert failing(suite_of(merger)) == {}


class AsksForWhatIsNotThere(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer if context.get_value(newer, "prize") is None else older


class MovesRecords(Broken):
    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer if newer.record is None else context.replace(newer, name="elsewhere")


class MovesBatches(Broken):
    def merge_batch(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer.with_columns(name=["elsewhere"] * len(newer))


def test_a_column_that_the_schema_does_not_have_is_found() -> None:
    found = failing(suite_of(AsksForWhatIsNotThere))
    assert "a column that the table does not have. [column=prize" in found["rows_in_order"]


@pytest.mark.parametrize("merger", [MovesRecords, MovesBatches])
def test_a_change_of_key_or_partition_fields_is_found_where_the_suite_knows_them(merger: type[RecordMerger]) -> None:
    found = failing(suite_of(merger, identity_fields=("name",)))
    assert found
    assert all("changed name, a record key or partition field" in why for why in found.values())
    assert failing(suite_of(Founder, identity_fields=("name",))) == {}
