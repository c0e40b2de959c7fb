"""Change records say what a plain comparison of the rows before and after a merge says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import CDC_MODES
from hoodie_py.writer.cdc import ChangeSchema, make_change_records
from tests.reader.slices import SCHEMA, Version, bases, config_of, logs, reader_of, write_slice

INSTANT = "20260103000000000"
TABLE = make_schema_text(SCHEMA.remove(0), "t")  # without the meta column
MODES = (MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING)


def capture(
    base: Sequence[Version], log: Sequence[Version], mode: MergeMode, capture_mode: str, memory_limit: int | None = None
) -> list[dict[str, Any]]:
    """The change records of a slice's merge."""
    schema = ChangeSchema.of(capture_mode, TABLE)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        file_slice = write_slice(place, base, log)
        reader = reader_of(place, file_slice, config_of(mode), batch_rows=3, memory_limit=memory_limit)
        found = [
            make_change_records(merged, reader.context.store, schema, INSTANT).to_pylist()
            for merged in reader.read_merges()
        ]
    return [record for records in found for record in records]


def read(base: Sequence[Version], log: Sequence[Version], mode: MergeMode) -> dict[str, dict[str, Any]]:
    """The rows of a slice by key, without meta column."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = [row for each in reader_of(place, write_slice(place, base, log), config_of(mode)).to_batches()
                for row in each.to_pylist()]  # fmt: skip
    return {row.pop("_hoodie_record_key"): row for row in rows}


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60, deadline=None)
@given(base=bases(), log=logs())
def test_changes_lead_from_the_rows_before_to_the_rows_after(
    mode: MergeMode, base: list[Version], log: list[Version]
) -> None:
    before, after = read(base, [], mode), read(base, log, mode)
    rows = dict(before)
    changes = capture(base, log, mode, "DATA_BEFORE_AFTER")
    assert {change["ts_ms"] for change in changes} <= {INSTANT}
    for change in changes:
        key = (change["before"] or change["after"])["id"]
        assert (
            change["op"]
            == {(True, False): "i", (False, False): "u", (False, True): "d"}[
                change["before"] is None, change["after"] is None
            ]
        )
        assert rows.pop(key, None) == change["before"]
        if change["after"] is not None:
            rows[key] = change["after"]
    assert rows == after
    assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= {
        (change["before"] or change["after"])["id"] for change in changes
    }


@settings(max_examples=40, deadline=None)
@given(base=bases(), log=logs())
def test_modes_agree(base: list[Version], log: list[Version]) -> None:
    both, before, keys = (capture(base, log, MODES[0], mode) for mode in reversed(CDC_MODES))
    named = [(each["op"], (each["before"] or each["after"])["id"]) for each in both]
    assert [(each["op"], each["record_key"]) for each in before] == named
    assert [(each["op"], each["record_key"]) for each in keys] == named
    assert [each["before"] for each in before] == [each["before"] for each in both]


def test_what_changed_nothing_is_left_out() -> None:
    base = [Version("k1", ts=5), Version("k2", ts=5)]
    log = [Version("k1", ts=4, v=9), Version("k3", kind="block", ts=9), Version("k2", ts=5, v=1)]
    [same] = capture(base, log, MergeMode.EVENT_TIME_ORDERING, "DATA_BEFORE_AFTER")
    assert same["op"] == "u", "a row that is written again is an update, as in Java, also with the same values"
    assert same["before"] == same["after"]
    assert same["before"]["id"] == "k2"


@settings(max_examples=20, deadline=None)
@given(base=bases(), log=logs())
def test_a_log_that_is_spilled_has_the_same_changes(base: list[Version], log: list[Version]) -> None:
    both = (sorted(map(repr, capture(base, log, MODES[1], "DATA_BEFORE_AFTER", limit))) for limit in (None, 1))
    assert next(both) == next(both)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
def test_all_rows_may_go(keys: list[str]) -> None:
    base = [Version(key) for key in keys]
    log = [Version(key, kind="block", ts=9) for key in keys]
    found = capture(base, log, MergeMode.EVENT_TIME_ORDERING, "DATA_BEFORE_AFTER")
    assert [(each["op"], each["before"]["id"], each["after"]) for each in found] == [("d", key, None) for key in keys]
