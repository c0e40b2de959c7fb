"""Which columns a read takes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidTableError
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.selection import MergeNeeds, list_merge_columns
from tests.reader.merge_cases.read_plan import ReadPlan, plan_read

STRUCT = pa.struct([("ts", pa.int64()), ("other", pa.string())])
TABLE = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("_hoodie_record_key", pa.string()),
        ("id", pa.string()),
        ("m", STRUCT),
        ("Op", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
        ("v", pa.int64()),
    ]
)
KEYS = RecordKeys.of(True, ())
DELETES = DeleteRules(flag=True, marker_field="Op", marker="D")


def test_a_nested_ordering_field_brings_its_column() -> None:
    needs = MergeNeeds(KEYS, ("m.ts",), DELETES)
    assert set(list_merge_columns(TABLE, needs)) == {"_hoodie_record_key", "m", "_hoodie_is_deleted", "Op"}
    assert plan_read(TABLE, ["v"], needs).required[0] == "v"


def test_a_missing_nested_ordering_field_is_an_error() -> None:
    with pytest.raises(InvalidTableError, match=r"m\.nope"):
        list_merge_columns(TABLE, MergeNeeds(KEYS, ("m.nope",), DELETES))


def test_letter_case_alone_needs_no_projection() -> None:
    assert plan_read(TABLE, ["ID"], None) == ReadPlan(("ID",), False)


def test_a_bootstrap_file_read_by_position_carries_row_numbers_on_both_sides() -> None:
    needs = MergeNeeds(KEYS, (), DeleteRules())
    plan = plan_read(TABLE, ["v"], needs, row_index=True, use_positions=True, bootstrap=True)
    assert plan.required == ("_hoodie_record_key", "v", "_tmp_metadata_row_index")
    assert plan.bootstrap_meta == ("_hoodie_record_key", "_tmp_metadata_row_index")
    assert plan.bootstrap_data == ("v", "_tmp_metadata_row_index")
    assert plan.bootstrap_merge
    assert plan.output_projection
